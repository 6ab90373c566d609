"""Paths of data: a local folder, or a prefix of an object store by its URL, with the same methods.

>>> store_path("data"), store_path("s3://bucket/home")
(PosixPath('data'), S3Path('bucket/home', protocol='s3'))

Listings of an object store are never cached: other machines write, too. What is uploaded is seen whole or not at all.
"""

import logging
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast
from uuid import uuid4

import fsspec
from fsspec.implementations.local import LocalFileSystem
from upath import UPath

from darkroom.pipelines.storage.storage_errors import (
    AZURE,
    STORES,
    StorageError,
    no_bucket,
    no_store,
    replaced_while_read,
    storage_errors,
)
from darkroom.sandbox.errors import raised_as

# Google's client logs tracebacks of what it raises, and a line per request where it may not ask for a bucket's kind
logging.getLogger("gcsfs").setLevel(logging.CRITICAL)

StorePath: TypeAlias = Path | UPath
"""A ``Path`` where it is local, else a ``UPath``."""
_LOCAL = ("file", "local")
_BLOCK_BYTES = 8 << 20
"""Read ahead from an object: a row group of a table is one request, and not more in memory."""
_SMALL_BYTES = 256 << 10
"""An object that takes no longer to read as a whole than by some requests."""


def store_path(where: str | Path) -> StorePath:
    """The place that a folder's name or a URL means. Raises ``StorageError`` for a URL that none can have."""
    text = str(where)
    protocol, has_protocol, rest = text.partition("://")
    if not has_protocol:
        if typo := re.match(rf"({'|'.join([*STORES, *_LOCAL])}):", text):
            raise StorageError(f"{text!r} is no URL: write {typo[1]}://…")
        return Path(where).expanduser()  # `~` in a settings file, where no shell reads it
    if protocol in _LOCAL:
        if not rest.startswith("/"):
            raise StorageError(f"{text}: a file's URL has three slashes: write {protocol}:///{rest}")
        return Path(LocalFileSystem._strip_protocol(text))
    if protocol not in STORES:
        raise StorageError(f"{text}: expected a folder, or a URL with {', '.join(STORES)}; found {protocol}://")
    if not rest.strip("/"):
        raise StorageError(f"{text} names no bucket: write {protocol}://bucket/prefix")
    with storage_errors(text):
        path = UPath(text.rstrip("/"), use_listings_cache=False)
        path.fs  # noqa: B018  # its library is imported here
    return path


def filesystem(url: str) -> tuple[Any, str]:
    """The file system of any fsspec URL, and the path in it. Raises ``StorageError``."""
    with storage_errors(url):
        result: tuple[Any, str] = fsspec.core.url_to_fs(url, use_listings_cache=False)
    return result


def reach(where: StorePath) -> None:
    """One request that shows whether an object store is there and lets us in. Raises ``StorageError``."""
    if isinstance(where, Path):
        return
    with storage_errors(str(where)):
        try:
            where.fs.ls(where.path, detail=False)
        except FileNotFoundError:  # the prefix comes with its first object; the bucket does not
            if where.protocol != "memory":
                _reach_bucket(where)


def _reach_bucket(where: UPath) -> None:
    with raised_as(lambda error: no_bucket(str(where)), FileNotFoundError):  # Google's and Azure's clients say no more
        where.fs.ls(f"{where.path.strip('/').split('/')[0]}/", detail=False)
    if has_file(where / uuid4().hex):  # a web server, such as a store's console, has a page for every name
        raise no_store(str(where))


def children(folder: StorePath) -> list[StorePath]:
    """Contents of a folder, sorted by name; empty where there is none."""
    try:
        if isinstance(folder, Path):
            return sorted(folder.iterdir(), key=str)
        paths = [path.strip("/") for path in folder.fs.ls(folder.path, detail=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    own = folder.path.strip("/")  # which is listed where it is an object itself
    return [folder / path.rpartition("/")[2] for path in sorted(paths) if path != own]


def has_file(path: StorePath) -> bool:
    """True if a non-empty file is there. In a store it is one request for a byte: clients ask for a folder of this
    name, too, by a listing, which costs ten times as much."""
    if isinstance(path, Path):
        return path.is_file()
    with suppress(FileNotFoundError):
        return bool(path.fs.cat_file(path.path, start=0, end=1))
    return False


def content(path: StorePath) -> bytes | None:
    """Bytes of a small file; None where there is none. In a store it is one request."""
    with suppress(FileNotFoundError):
        return path.read_bytes() if isinstance(path, Path) else read_at_once(path.fs, path.path)
    return None


@contextmanager
def opened(path: StorePath, *, ahead: bool = True) -> Iterator[Path | BinaryIO]:
    """Open a file for pyarrow; of an object the next block comes, too, unless it is large and ``ahead`` is False, for
    readers of some columns. Raises ``FileNotFoundError``, ``StorageError``."""
    if isinstance(path, Path):
        yield path
        return
    options = {"cache_type": "readahead", "block_size": _BLOCK_BYTES} if ahead else {"cache_type": "none"}
    with storage_errors(str(path)), path.fs.open(path.path, "rb", **options) as file:
        try:
            yield BytesIO(file.read()) if not ahead and file.size <= _SMALL_BYTES else cast(BinaryIO, file)
        except Exception as error:
            if _is_replaced(file):
                raise replaced_while_read(str(path)) from error
            raise
        if _is_replaced(file):
            raise replaced_while_read(str(path))


def _is_replaced(file: Any) -> bool:
    """True if the object was replaced meanwhile, which only S3's client checks with each request."""
    if not hasattr(file, "details") or "s3" in file.fs.protocol:
        return False
    return bool(file.fs.info(file.path)["etag"] != file.details["etag"])


def whole(path: StorePath) -> Path | BinaryIO:
    """Open a file to read all of it; an object by one request, so that no writer comes in between."""
    if isinstance(path, Path):
        return path
    with storage_errors(str(path)):
        return BytesIO(read_at_once(path.fs, path.path))


def read_at_once(fs: Any, path: str) -> bytes:
    """An object that is not empty, by one request: S3's client asks for the length first, unless a range is named, and
    reads a long object in pieces, which may be those of two objects. Raises ``FileNotFoundError``."""
    return cast(bytes, fs.cat_file(path, start=0))


def end_of(path: UPath, n_bytes: int) -> bytes:
    """The last bytes of an object, or all of them."""
    # Azure needs the place where they begin; a server that knows no such ranges sends all
    start = max(0, path.stat().st_size - n_bytes) if STORES[path.protocol] is AZURE else -n_bytes
    return cast(bytes, path.fs.cat_file(path.path, start=start))[-n_bytes:]


def upload(part: Path, to: UPath) -> None:
    """A local file as the object ``to``, in one step. Raises ``StorageError``."""
    with storage_errors(str(to), writes=True):
        to.fs.put_file(str(part), to.path)


def remove(path: StorePath) -> None:
    """Deletes a file or a folder, if it is there. Raises ``StorageError``."""
    with storage_errors(str(path)):
        if isinstance(path, Path) and path.is_dir():
            shutil.rmtree(path)
        elif isinstance(path, Path):
            path.unlink(missing_ok=True)
        else:
            with suppress(FileNotFoundError):
                path.fs.rm(path.path, recursive=True)


def remove_file(path: StorePath) -> None:
    """Deletes a file, if it is there; in a store by one request. Raises ``StorageError``."""
    with storage_errors(str(path)), suppress(FileNotFoundError):
        path.unlink() if isinstance(path, Path) else path.fs.rm_file(path.path)
