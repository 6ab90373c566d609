"""Where data lies: a local folder, or a prefix of an object store by its URL; both are paths with the same methods.

>>> place("data"), place("s3://bucket/home")
(PosixPath('data'), S3Path('bucket/home', protocol='s3'))

Listings of an object store are never cached: other machines write, too. What is uploaded is seen whole or not at all.
"""

import re
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem
from upath import UPath

from pipelines.storage.storage_errors import STORES, StorageError, storage_errors

Place: TypeAlias = Path | UPath
"""A ``Path`` where it is local, else a ``UPath``."""
_LOCAL = ("file", "local")
_BLOCK_BYTES = 8 << 20
"""Read ahead from an object: a row group of a table is one request, and not more in memory."""


def place(where: str | Path) -> Place:
    """The place that a folder's name or a URL means. Raises ``StorageError`` for a URL that none can have."""
    text = str(where)
    protocol, has_protocol, rest = text.partition("://")
    if not has_protocol:
        if typo := re.match(rf"({'|'.join([*STORES, *_LOCAL])}):", text):
            raise StorageError(f"{text!r} is no URL: write {typo[1]}://…")
        return Path(where)
    if protocol in _LOCAL:
        return Path(LocalFileSystem._strip_protocol(text))
    if protocol not in STORES:
        raise StorageError(f"{text}: expected a folder, or a URL with {', '.join(STORES)}; found {protocol}://")
    if not rest.strip("/"):
        raise StorageError(f"{text} names no bucket: write {protocol}://bucket/prefix")
    with storage_errors(text):
        found = UPath(text.rstrip("/"), use_listings_cache=False)
        found.fs  # noqa: B018  # its library is imported here
    return found


def filesystem(url: str) -> tuple[Any, str]:
    """The file system of any fsspec URL, and the path in it. Raises ``StorageError``."""
    with storage_errors(url):
        found: tuple[Any, str] = fsspec.core.url_to_fs(url, use_listings_cache=False)
    return found


def reach(where: Place) -> None:
    """One request that shows whether an object store is there and lets us in. Raises ``StorageError``."""
    if isinstance(where, Path):
        return
    with storage_errors(str(where)):
        bucket = f"{where.path.strip('/').split('/')[0]}/"
        try:
            where.fs.ls(where.path, detail=False)
        except FileNotFoundError:  # the prefix comes with its first object; the bucket does not
            if where.protocol != "memory":
                where.fs.ls(bucket, detail=False)


def children(folder: Place) -> list[Place]:
    """What lies in a folder, sorted by name; nothing where there is none."""
    try:
        return cast(list[Place], sorted(folder.iterdir(), key=str))
    except (FileNotFoundError, NotADirectoryError):
        return []


def readable(path: Place) -> Path | BinaryIO:
    """What pyarrow and polars read a file from; of an object, what is read next comes with what was asked for.

    Raises ``FileNotFoundError``, ``StorageError``.
    """
    if isinstance(path, Path):
        return path
    with storage_errors(str(path)):
        return cast(BinaryIO, path.fs.open(path.path, "rb", cache_type="readahead", block_size=_BLOCK_BYTES))


def whole(path: Place) -> Path | BinaryIO:
    """As ``readable``, for who reads all of it; of an object by one request, so that no writer comes in between."""
    if isinstance(path, Path):
        return path
    with storage_errors(str(path)):
        return BytesIO(path.fs.cat_file(path.path))


def upload(part: Path, to: UPath) -> None:
    """A local file as the object ``to``, in one step. Raises ``StorageError``."""
    with storage_errors(str(to)):
        to.fs.put_file(str(part), to.path)


def remove(path: Place) -> None:
    """Deletes a file or a folder, if it is there. Raises ``StorageError``."""
    with storage_errors(str(path)):
        if isinstance(path, Path) and path.is_dir():
            shutil.rmtree(path)
        elif isinstance(path, Path):
            path.unlink(missing_ok=True)
        elif path.exists():
            path.fs.rm(path.path, recursive=True)
