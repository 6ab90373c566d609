"""Rows on disk: tables' files with metadata in the footer, streams that are read anew, spilled rows of a process."""

import hashlib
import pickle
import tempfile
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from darkroom.pipelines.records.schemas import schema_of, to_table
from darkroom.pipelines.storage.storage_errors import storage_errors
from darkroom.pipelines.storage.store_paths import StorePath, end_of

R = TypeVar("R")
K = TypeVar("K")
V = TypeVar("V")
_UNSORTED = 1 << 14
"""Keys that wait in a dict, or an eighth of all: 100 bytes each."""


@dataclass(frozen=True, slots=True)
class RowStream(Collection[R]):
    """``n_rows`` rows that ``read`` gives, the same ones each time."""

    n_rows: int
    read: Callable[[], Iterator[R]]

    def __len__(self) -> int:
        return self.n_rows

    def __iter__(self) -> Iterator[R]:
        return self.read()

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)


def by_key(pairs: Iterable[tuple[K, V]]) -> defaultdict[K, list[V]]:
    """The values of each key, in their order."""
    groups = defaultdict[K, list[V]](list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def scratch_file(owner: object, folder: Path | None) -> IO[bytes]:
    """A file without a name that is closed with its ``owner``, in ``folder``, or where the system keeps such files."""
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed with the owner
    weakref.finalize(owner, file.close)
    return file


class RowSpill:
    """Rows on disk by where they begin, in a file of ``folder`` without a name: it goes with the spill."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = scratch_file(self, folder)
        self._end = 0

    def add(self, row: Any) -> int:
        """Append a row; returns where it begins."""
        begin = self._end
        self._file.seek(begin)
        pickle.dump(row, self._file, protocol=pickle.HIGHEST_PROTOCOL)
        self._end = self._file.tell()
        return begin

    def read(self, begin: int) -> Any:
        self._file.seek(begin)
        return pickle.load(self._file)  # written by this process, seen by no other


class KeyedSpill:
    """Rows on disk by keys of 64 bits (``digest.key64``): of each about 30 bytes are in memory."""

    def __init__(self, folder: Path) -> None:
        self._spill = RowSpill(folder)
        self._keys: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._begins: NDArray[np.int64] = np.zeros(0, np.int64)
        self._unsorted: dict[int, int] = {}

    def add(self, key: int, row: Any) -> None:
        """A key's last row is the one that counts."""
        self._unsorted[key] = self._spill.add(row)
        if len(self._unsorted) >= max(_UNSORTED, len(self._keys) // 8):
            keys = np.concatenate([self._keys, np.fromiter(self._unsorted, np.uint64)])
            begins = np.concatenate([self._begins, np.fromiter(self._unsorted.values(), np.int64)])
            order = np.argsort(keys, kind="stable")  # what was added later stays behind
            self._keys, self._begins = keys[order], begins[order]
            self._unsorted.clear()

    def get(self, key: int) -> Any:
        """The row; None where there is none."""
        begin = self._unsorted.get(key)
        if begin is None:
            place = int(np.searchsorted(self._keys, np.uint64(key), "right")) - 1
            if place < 0 or self._keys[place] != key:
                return None
            begin = int(self._begins[place])
        return self._spill.read(begin)


ROWS_PER_GROUP = 1_000
"""Rows of one parquet row group of a table."""
_TAIL_BYTES = 1 << 16
"""Longer than most footers."""
_LEFT_SECONDS = 86_400.0
"""A part that was written to so long ago was left by a process that was killed; another's may grow at this moment."""


def rows_digest(path: StorePath) -> str:
    """Digest of a file's pages: what precedes the footer, which holds the metadata, its length and 4 magic bytes."""
    return file_digest(path, path.stat().st_size - footer(path).serialized_size - 8)


def footer(path: StorePath) -> Any:
    """A parquet file's metadata, from an object's end alone. Raises ``FileNotFoundError``, ``StorageError``."""
    with storage_errors(str(path)):
        if isinstance(path, Path):
            return pq.read_metadata(path)
        tail = end_of(path, _TAIL_BYTES)
        if len(tail) < (n_bytes := int.from_bytes(tail[-8:-4], "little") + 8):
            tail = end_of(path, n_bytes)
        return pq.read_metadata(BytesIO(tail))


def file_digest(path: StorePath, n_bytes: int | None = None) -> str:
    """sha256 of the first ``n_bytes``; None: of all."""
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
        with suppress(FileNotFoundError):  # it was finished meanwhile
            if time.time() - orphan.stat().st_mtime > _LEFT_SECONDS:
                orphan.unlink()
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    remaining = iter(rows)
    groups = iter(lambda: list(islice(remaining, ROWS_PER_GROUP)), [])
    with pq.ParquetWriter(part, schema_of(kind).with_metadata(metadata), compression="zstd") as writer:
        for group in chain([next(groups, [])], groups):  # a table without rows has a row group, too
            writer.write_table(to_table(kind, group).replace_schema_metadata(metadata))
        if footer is not None:
            writer.add_key_value_metadata(footer(part))
    return part
