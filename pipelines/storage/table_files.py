"""One table's file: written whole with metadata in its footer; digests of its rows."""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow.parquet as pq

from darkroom.pipelines.records.schemas import schema_of, to_table
from darkroom.pipelines.storage.places import Place, end_of
from darkroom.pipelines.storage.storage_errors import storage_errors

R = TypeVar("R")
ROWS_PER_GROUP = 1_000
"""Rows of one parquet row group of a table."""
_TAIL_BYTES = 1 << 16
"""Longer than most footers."""
_LEFT_SECONDS = 86_400.0
"""A part that was written to so long ago was left by a process that was killed; another's may grow at this moment."""


def rows_digest(path: Place) -> str:
    """Digest of a file's pages: what precedes the footer, which holds the metadata, its length and 4 magic bytes."""
    return file_digest(path, path.stat().st_size - footer(path).serialized_size - 8)


def footer(path: Place) -> Any:
    """A parquet file's metadata, from an object's end alone. Raises ``FileNotFoundError``, ``StorageError``."""
    with storage_errors(str(path)):
        if isinstance(path, Path):
            return pq.read_metadata(path)
        tail = end_of(path, _TAIL_BYTES)
        if len(tail) < (n_bytes := int.from_bytes(tail[-8:-4], "little") + 8):
            tail = end_of(path, n_bytes)
        return pq.read_metadata(BytesIO(tail))


def file_digest(path: Place, n_bytes: int | None = None) -> str:
    """Of the first ``n_bytes``; None: of all."""
    hashed, remaining = hashlib.sha256(), path.stat().st_size if n_bytes is None else n_bytes
    with path.open("rb") as file:
        while remaining > 0:
            chunk = file.read(min(remaining, 1 << 20))
            hashed.update(chunk)
            remaining -= len(chunk)
    return hashed.hexdigest()


def write_part(
    path: Path,
    kind: type[R],
    rows: Iterable[R],
    metadata: Mapping[bytes, bytes],
    *,
    footer: Callable[[Path], Mapping[bytes, bytes]] | None = None,
) -> Path:
    """``footer``: more metadata, from the file that holds all pages and no footer yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for orphan in path.parent.glob(f".{path.name}.*"):
        if time.time() - _written_at(orphan) > _LEFT_SECONDS:
            orphan.unlink(missing_ok=True)
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    remaining = iter(rows)
    groups = iter(lambda: list(islice(remaining, ROWS_PER_GROUP)), [])
    with pq.ParquetWriter(part, schema_of(kind).with_metadata(metadata), compression="zstd") as writer:
        for group in chain([next(groups, [])], groups):  # a table without rows has a row group, too
            writer.write_table(to_table(kind, group).replace_schema_metadata(metadata))
        if footer is not None:
            writer.add_key_value_metadata(footer(part))
    return part


def _written_at(part: Path) -> float:
    """Seconds since 1970; now, where it was finished meanwhile."""
    try:
        return part.stat().st_mtime
    except FileNotFoundError:
        return time.time()
