"""Images and videos in somebody's rows: bytes, a ``datasets`` struct, a path, base64, a data URL, or a list of these.

A list may be spelled as text. Paths are below a folder, or inside a ZIP archive that is given as the folder.
"""

from __future__ import annotations

import base64
import os
import stat
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import fsspec

from pipelines.rejects import Reason, RowFault
from pipelines.sources.columns import value_at
from pipelines.sources.json_texts import list_in, object_in

_ARCHIVES = ("zip://", "hf://")
"""How ``datasets`` names a file that lies in an archive or on the hub."""

_BASE64 = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "Qk0", "SUkq", "TU0A")
"""How PNG, JPEG, GIF, WebP, BMP and TIFF begin in base64."""

_SHORTEST_BASE64 = 64
"""No image is shorter; a path that begins so and is as long is no path that anybody has."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a column holds, in words, and the reasons for which it may not be had."""

    name: str
    missing: Reason
    unreadable: Reason


IMAGE = Kind("an image", Reason.MISSING_IMAGE, Reason.UNREADABLE_IMAGE)
VIDEO = Kind("a video", Reason.MISSING_VIDEO, Reason.UNREADABLE_VIDEO)
_SIDECAR = Kind("a JSON file", Reason.MALFORMED_ROW, Reason.MALFORMED_ROW)


def media(row: Mapping[str, Any], column: str | None, folder: Path, kind: Kind, *, prefix: str = "") -> Iterable[bytes]:
    """The files that a row has in ``column``; relative paths, less ``prefix``, are below ``folder``.

    Raises ``RowFault`` for a column that is empty (an empty list says that there is none) and for what cannot be read.
    """
    if not column:
        return
    value = value_at(row, column)
    if value is None or value == "":
        raise RowFault(kind.missing, f"column {column!r} is empty")
    several = list_in(value)
    for one in [value] if several is None else several:
        yield _bytes(one, column, folder, kind, prefix)


def json_beside(row: Mapping[str, Any], column: str | None, folder: Path, *, prefix: str = "") -> Mapping[str, Any]:
    """What the JSON file beside a row's image says: ``a/1.json`` for the path ``a/1.jpg`` in ``column``.

    Raises ``RowFault`` where the column holds no path, and for a file that is missing or no JSON object.
    """
    path = value_at(row, column) if column else None
    if not isinstance(path, str):
        raise RowFault(Reason.WRONG_TYPE, f"column {column!r}: expected the path of an image, found {describe(path)}")
    name = str(PurePosixPath(path).with_suffix(".json"))
    found = object_in(_bytes(name, column or "", folder, _SIDECAR, prefix).decode("utf-8", "replace"))
    if found is None:
        raise RowFault(Reason.MALFORMED_ROW, f"{name} holds no JSON object")
    return found


def describe(value: Any) -> str:
    """A value that was not expected, for a person."""
    return "nothing" if value is None else f"{type(value).__name__} {str(value)[:60]!r}"


def _bytes(value: Any, column: str, folder: Path, kind: Kind, prefix: str) -> bytes:
    if isinstance(value, Mapping):
        value = value.get("path") if value.get("bytes") is None else value["bytes"]
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str) or not value:
        raise RowFault(Reason.WRONG_TYPE, f"column {column!r}: expected {kind.name} or a path, found {describe(value)}")
    if value.startswith("data:"):
        return _decoded(value.partition(",")[2], f"column {column!r}: a data URL that is not base64", kind)
    if value.startswith(_BASE64) and len(value) >= _SHORTEST_BASE64:
        return _decoded(value, f"column {column!r}: begins as base64 and is none", kind)
    if value.startswith(_ARCHIVES):
        return _archived_bytes(value, kind)
    path = value.removeprefix(prefix)
    if os.path.normpath(path).split(os.sep)[0] == os.pardir:
        raise RowFault(Reason.MALFORMED_ROW, f"column {column!r}: the path {value!r} leaves the folder")
    return _zipped_bytes(folder, path, kind) if folder.suffix == ".zip" else _file_bytes(folder / path, kind)


def _decoded(text: str, problem: str, kind: Kind) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as fault:  # binascii.Error is one
        raise RowFault(kind.unreadable, f"{problem}: {fault}") from fault


def _file_bytes(path: Path, kind: Kind) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would make us wait, a device never ends
            raise RowFault(kind.unreadable, f"{path} is not a file")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as fault:
        raise RowFault(kind.missing, f"there is no file {path}") from fault
    except OSError as fault:
        raise RowFault(kind.unreadable, f"{path}: {fault.strerror}") from fault
    except ValueError as fault:
        raise RowFault(Reason.MALFORMED_ROW, f"{str(path)!r} is no path: {fault}") from fault


def _archived_bytes(url: str, kind: Kind) -> bytes:
    try:
        with fsspec.open(url, "rb") as file:
            return bytes(file.read())
    except (OSError, KeyError, ValueError) as fault:
        raise RowFault(kind.missing, f"{url} cannot be read: {fault}") from fault


def _zipped_bytes(archive: Path, path: str, kind: Kind) -> bytes:
    try:
        return _zip(archive, archive.stat().st_mtime_ns).read(os.path.normpath(path))
    except (KeyError, FileNotFoundError) as fault:
        raise RowFault(kind.missing, f"there is no {path} in {archive}") from fault
    except (OSError, zipfile.BadZipFile, zlib.error, RuntimeError) as fault:  # RuntimeError: encrypted, or how packed
        raise RowFault(kind.unreadable, f"{path} in {archive} cannot be read: {fault}") from fault


@lru_cache(maxsize=4)
def _zip(archive: Path, changed_ns: int) -> zipfile.ZipFile:
    """Open until the process ends: the directory of an archive of many thousand files takes a second to read."""
    return zipfile.ZipFile(archive)
