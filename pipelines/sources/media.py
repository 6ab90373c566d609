"""Images and videos in somebody's rows: bytes, a ``datasets`` struct, a path, a data URL, or a list of these."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec

from pipelines.rejects import Reason, RowFault

_ARCHIVES = ("zip://", "hf://")
"""How ``datasets`` names a file that lies in an archive or on the hub."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a column holds, in words, and the reasons for which it may not be had."""

    name: str
    missing: Reason
    unreadable: Reason


IMAGE = Kind("an image", Reason.MISSING_IMAGE, Reason.UNREADABLE_IMAGE)
VIDEO = Kind("a video", Reason.MISSING_VIDEO, Reason.UNREADABLE_VIDEO)


def media(row: Mapping[str, Any], column: str | None, folder: Path, kind: Kind) -> Iterable[bytes]:
    """The files that a row has in ``column``; relative paths are below ``folder``.

    Raises ``RowFault`` for a column that is empty (an empty list says that there is none) and for what cannot be read.
    """
    if not column:
        return
    value = row.get(column)
    if value is None or value == "":
        raise RowFault(kind.missing, f"column {column!r} is empty")
    for one in value if isinstance(value, list | tuple) else [value]:
        yield _bytes(one, column, folder, kind)


def describe(value: Any) -> str:
    """A value that was not expected, for a person."""
    return "nothing" if value is None else f"{type(value).__name__} {str(value)[:60]!r}"


def _bytes(value: Any, column: str, folder: Path, kind: Kind) -> bytes:
    if isinstance(value, Mapping):
        value = value.get("path") if value.get("bytes") is None else value["bytes"]
    if isinstance(value, bytes):
        return value
    if isinstance(value, str) and value.startswith("data:"):
        return _data_url(value, column, kind)
    if isinstance(value, str) and value.startswith(_ARCHIVES):
        return _archived_bytes(value, kind)
    if isinstance(value, str) and os.path.normpath(value).split(os.sep)[0] == os.pardir:
        raise RowFault(Reason.MALFORMED_ROW, f"column {column!r}: the path {value!r} leaves the folder")
    if isinstance(value, str) and value:
        return _file_bytes(folder / value, kind)
    raise RowFault(Reason.WRONG_TYPE, f"column {column!r}: expected {kind.name} or a path, found {describe(value)}")


def _data_url(url: str, column: str, kind: Kind) -> bytes:
    try:
        return base64.b64decode(url.partition(",")[2], validate=True)
    except ValueError as fault:  # binascii.Error is one
        raise RowFault(kind.unreadable, f"column {column!r}: a data URL that is not base64: {fault}") from fault


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
