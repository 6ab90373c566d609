"""Images and videos in users' rows: bytes, a ``datasets`` struct, a path, base64, a data URL, or a list of these, also
one written as text. Paths are below a folder, or inside a ZIP archive in its place."""

import os
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

import fsspec
import pybase64

from darkroom.pipelines.records.reject_reasons import Reason, RowError, storable
from darkroom.pipelines.sources.columns import BESIDE, alternatives, filled, list_in, object_in, value_at
from darkroom.pipelines.storage.media_validation import MAX_VIDEO_BYTES, too_long
from darkroom.sandbox.errors import raised_as

_ARCHIVES = ("zip://", "hf://")
"""URLs of ``datasets`` for files in an archive or on the hub."""

_BASE64 = ("iVBORw0KGgo", "/9j/", "_9j_", "R0lGOD", "UklGR", "Qk0", "SUkq", "TU0A")
"""The first characters of PNG, JPEG (also URL-safe), GIF, WebP, BMP and TIFF in base64."""

_URL = re.compile(r"\A[a-z][a-z0-9+.-]+://", re.IGNORECASE)

_PARTS = ("image", "image_url", "source", "url", "path")
"""Keys under which a part of a message has its image."""
_INSIDE = ("path", "url", "data", "image_url", "image")
"""Keys under which an object has its image, besides ``bytes``."""

_LONGEST_NAME = 200
_SHORTEST_BASE64 = 64
"""No image is shorter, and no real path begins so and is as long."""


class MediaKind(NamedTuple):
    """The content of a column in words, and its reject reasons."""

    name: str
    missing: Reason
    unreadable: Reason


IMAGE = MediaKind("an image", Reason.MISSING_IMAGE, Reason.UNREADABLE_IMAGE)
VIDEO = MediaKind("a video", Reason.MISSING_VIDEO, Reason.UNREADABLE_VIDEO)
_SIDECAR = MediaKind("a JSON file", Reason.MALFORMED_ROW, Reason.MALFORMED_ROW)


def media(
    row: Mapping[str, Any],
    column: str | tuple[str, ...] | None,
    folder: Path,
    kind: MediaKind,
    *,
    prefix: str = "",
    optional: bool = False,
    read: Callable[[bytes | Path], Any] | None = None,
) -> Iterable[Any]:
    """The files of a row's ``column``, as bytes or ``read``; relative paths, less ``prefix``, are below ``folder``.
    Raises ``RowError`` for unreadable files, and unless they are ``optional`` for an empty column (an empty list means
    no files; of several columns one must have a file)."""
    values = _filled_columns(row, column)
    if column and not values and not optional:
        raise RowError(kind.missing, f"column {' or '.join(map(repr, alternatives(column)))} is empty")
    for name, value in values:
        for entry in _entries(value):
            yield (read or partial(_bytes, kind=kind))(_located(entry, name, folder, kind, prefix))


def file_names(row: Mapping[str, Any], column: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Names of the files that ``media`` reads, as the row has them; empty where it names none."""
    return tuple(_file_name(entry) for _, value in _filled_columns(row, column) for entry in _entries(value))


def _filled_columns(row: Mapping[str, Any], column: str | tuple[str, ...] | None) -> list[tuple[str, Any]]:
    return [(name, value) for name in alternatives(column) if (value := filled(row, name)) is not None and value != ""]


def _entries(value: Any) -> list[Any]:
    entries = list_in(value)
    return part_images(entries) if entries and is_conversation(entries) else [value] if entries is None else entries


def is_conversation(value: Any) -> bool:
    """True for a list of messages, each with a role."""
    messages = list_in(value) or [None]
    return all(isinstance(message, Mapping) and not message.keys().isdisjoint(("role", "from")) for message in messages)


def part_images(messages: Any) -> list[Any]:
    """The images among the parts of chat messages, in their order; ``{"type": "image"}`` alone names none."""
    mappings = [message for message in list_in(messages) or () if isinstance(message, Mapping)]
    contents = [message.get("content", message.get("value")) for message in mappings]
    parts = [part for content in contents if not isinstance(content, str) for part in list_in(content) or ()]
    return [image for part in parts if isinstance(part, Mapping) and (image := part_image(part))]


def part_image(part: Mapping[str, Any]) -> Any:
    """The image that a part of a message holds itself, or its name; None without one."""
    return next((part[key] for key in _PARTS if part.get(key)), None)


def is_embedded(value: Any) -> bool:
    """True for an image's bytes, its struct, or its base64."""
    if isinstance(value, Mapping):
        return any(is_embedded(value.get(key)) for key in ("bytes", *_INSIDE))
    return isinstance(value, bytes) or (isinstance(value, str) and value.startswith(("data:", *_BASE64)))


def _file_name(entry: Any) -> str:
    name = entry.get("path") if isinstance(entry, Mapping) else entry
    if not isinstance(name, str) or name.startswith(("data:", *_BASE64)):
        return ""
    return storable(name[:_LONGEST_NAME])


def with_json_beside(
    row: Mapping[str, Any], column: str | tuple[str, ...] | None, folder: Path, *, prefix: str = ""
) -> Mapping[str, Any]:
    """The row with the content of the JSON file beside its image: ``a/1.json`` for the path ``a/1.jpg`` in ``column``.
    Raises ``RowError`` where the column contains no path, and for a file that is missing or no JSON object."""
    first = alternatives(column)[0] if column else ""
    path = value_at(row, first)
    if not isinstance(path, str):
        raise RowError(Reason.WRONG_TYPE, f"column {first!r}: expected the path of an image, found {describe(path)}")
    name = str(PurePosixPath(path).with_suffix(".json"))
    fields = object_in(_bytes(_located(name, first, folder, _SIDECAR, prefix), _SIDECAR).decode("utf-8", "replace"))
    if fields is None:
        raise RowError(Reason.MALFORMED_ROW, f"{name} holds no JSON object")
    return {**row, BESIDE: fields}


def describe(value: Any) -> str:
    """An unexpected value, for error messages."""
    return "nothing" if value is None else f"{type(value).__name__} {str(value)[:60]!r}"


def _located(value: Any, column: str, folder: Path, kind: MediaKind, prefix: str) -> bytes | Path:
    while isinstance(value, Mapping):
        value = next((value[key] for key in ("bytes", *_INSIDE) if value.get(key) is not None), None)
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str) or not value:
        raise RowError(Reason.WRONG_TYPE, f"column {column!r}: expected {kind.name} or a path, found {describe(value)}")
    if value.startswith("data:"):
        return _decoded(value.partition(",")[2], f"column {column!r}: a data URL that is not base64", kind)
    if value.startswith(_BASE64) and len(value) >= _SHORTEST_BASE64:
        return _decoded(value, f"column {column!r}: begins as base64 and is none", kind)
    if value.startswith(_ARCHIVES):
        return _archived_bytes(value, kind)
    if _URL.match(value) and not value.startswith("file://"):
        why = "is a URL, and nothing is fetched: download the files, and name their paths in its column"
        raise RowError(kind.missing, f"column {column!r}: {value[:_LONGEST_NAME]!r} {why}")
    paths = spellings(value.removeprefix("file://").removeprefix(prefix))
    if any(os.path.normpath(path).split(os.sep)[0] == os.pardir for path in paths):
        raise RowError(Reason.MALFORMED_ROW, f"column {column!r}: the path {value!r} leaves the folder")
    if folder.suffix == ".zip":
        return _zipped_bytes(folder, paths, kind)
    return folder / next((path for path in paths if os.path.exists(folder / path)), paths[0])


def spellings(path: str) -> list[str]:
    """A path, and what it means where no file has the name: back slashes, ``%20``, Label Studio's ``?d=``, NFC, NFD."""
    plain = path.replace("\\", "/")
    unquoted = unquote(plain.partition("?d=")[2] or plain)
    composed = [unicodedata.normalize(form, name) for name in (plain, unquoted) for form in ("NFC", "NFD")]
    return list(dict.fromkeys([path, *composed]))


def _decoded(text: str, problem: str, kind: MediaKind) -> bytes:
    """Bytes of base64: standard or URL-safe, in one line or in MIME's."""
    safe = text.translate(str.maketrans("-_", "+/"))
    if safe != text or text[-1:].isspace() or "\n" in text:
        safe = "".join(safe.split())
        safe += "=" * (-len(safe) % 4)
    with raised_as(lambda error: RowError(kind.unreadable, f"{problem}: {error}"), ValueError):  # binascii.Error is one
        return pybase64.b64decode(safe, validate=True)


def _bytes(path: bytes | Path, kind: MediaKind) -> bytes:
    if isinstance(path, bytes):
        return path
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe blocks, a device never ends
            raise RowError(kind.unreadable, f"{path} is not a file")
        _check_size(path.stat().st_size, kind)
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RowError(kind.missing, f"there is no file {path}") from error
    except OSError as error:
        raise RowError(kind.unreadable, f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise RowError(Reason.MALFORMED_ROW, f"{str(path)!r} is no path: {error}") from error


def _check_size(n_bytes: int, kind: MediaKind) -> None:
    if kind is VIDEO and n_bytes > MAX_VIDEO_BYTES:  # before it fills the memory
        raise too_long(f"{n_bytes:,} bytes, the limit is {MAX_VIDEO_BYTES:,}")


def _archived_bytes(url: str, kind: MediaKind) -> bytes:
    try:
        with fsspec.open(url, "rb") as file:
            return bytes(file.read())
    except (OSError, KeyError, ValueError) as error:
        raise RowError(kind.missing, f"{url} cannot be read: {error}") from error


def _zipped_bytes(archive: Path, paths: Sequence[str], kind: MediaKind) -> bytes:
    path = paths[0]
    try:
        opened = _zip(archive, archive.stat().st_mtime_ns)
        members = [os.path.normpath(path) for path in paths]
        member = next((name for name in members if name in opened.NameToInfo), members[0])
        _check_size(opened.getinfo(member).file_size, kind)
        return opened.read(member)
    except (KeyError, FileNotFoundError) as error:
        raise RowError(kind.missing, f"there is no {path} in {archive}") from error
    except (OSError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:  # RuntimeError: encrypted, or packed oddly
        raise RowError(kind.unreadable, f"{path} in {archive} cannot be read: {error}") from error


@lru_cache(maxsize=4)
def _zip(archive: Path, changed_ns: int) -> zipfile.ZipFile:
    """Open until the process ends: the directory of an archive with many thousand files takes a second to read."""
    return zipfile.ZipFile(archive)
