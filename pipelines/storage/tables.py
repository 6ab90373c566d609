"""Tables on disk: ``<root>/<asset>/<partition>.parquet`` and, beside it, ``<partition>.rejects.parquet``.

A table is written whole or not at all, rejects first (an older table goes before them), so a table that is there is a
finished stage. Its parquet metadata holds the digest of its inputs: a stage whose inputs are what they were is not run
again. Rows are written as they come, ``ROWS_PER_GROUP`` in memory at a time.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.records import Reject
from pipelines.records.digest import digest
from pipelines.records.schemas import from_table, schema_of, to_table
from sandbox.errors import UserError

R = TypeVar("R")
ROWS_PER_GROUP = 1_000
"""Rows of one parquet row group of a table."""
_ROWS_AT_ONCE = 256
_INPUTS, _FACTS = b"darkroom.inputs", b"darkroom.facts"
Mask = NDArray[np.bool_]
"""Of every row in its order whether it is meant."""


class TableMissing(UserError):
    """A stage's input has not been materialised."""


class TableStale(UserError):
    """A stage's input was made from something that has changed since; says what to materialise again."""


@dataclass(frozen=True, slots=True)
class TableKey:
    """Which table: the asset's path (``("crop", "drafts")``) and the partition."""

    asset: tuple[str, ...]
    partition: str

    def __str__(self) -> str:
        return f"{'/'.join(self.asset)} [{self.partition}]"


class Tables:
    """The tables below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, key: TableKey) -> Path:
        return self.root.joinpath(*key.asset, f"{key.partition}.parquet")

    def rejects_path(self, key: TableKey) -> Path:
        return self.root.joinpath(*key.asset, f"{key.partition}.rejects.parquet")

    def write(
        self, key: TableKey, kind: type[R], rows: Iterable[R], rejects: Iterable[Reject], *, inputs: str, facts: Any
    ) -> None:
        """Writes rows and rejects with the digest of what they were made from and the stage's ``facts`` (JSON)."""
        facts_json = json.dumps(facts, sort_keys=True)
        metadata = {_INPUTS: inputs.encode(), _FACTS: facts_json.encode()}
        rejects_part = _write_part(self.rejects_path(key), Reject, rejects, metadata)
        part = _write_part(self.path(key), kind, rows, metadata)
        self.path(key).unlink(missing_ok=True)
        os.replace(rejects_part, self.rejects_path(key))
        os.replace(part, self.path(key))

    def read(self, key: TableKey, kind: type[R]) -> list[R]:
        """The rows. Raises ``TableMissing``, naming the asset to materialise."""
        return from_table(kind, self._load(self.path(key), key))

    def stream(self, key: TableKey, kind: type[R], *, mask: Mask | None = None) -> Iterator[R]:
        """The rows (``mask``: those of them), a few in memory at a time. Raises ``TableMissing``."""
        begin = 0
        for batch in self._batches(key):
            end = begin + batch.num_rows
            rows = batch if mask is None else batch.filter(pa.array(mask[begin:end]))
            yield from from_table(kind, rows)
            begin = end

    def columns(self, key: TableKey, *names: str) -> Iterator[Any]:
        """Of every row a tuple with the values of some columns, as plain objects. Raises ``TableMissing``."""
        for batch in self._batches(key, names):
            yield from zip(*(batch[name].to_pylist() for name in names), strict=True)

    def read_rejects(self, key: TableKey) -> list[Reject]:
        """The rejects of the stage. Raises ``TableMissing``."""
        return from_table(Reject, self._load(self.rejects_path(key), key))

    def exists(self, key: TableKey) -> bool:
        """Whether the stage has finished for this partition."""
        return self.path(key).exists()

    def n_rows(self, key: TableKey) -> int:
        """Rows in the table, from the file's footer."""
        return int(self._footer(key).num_rows)

    def n_rejects(self, key: TableKey) -> int:
        """Rows in the table's rejects, from the file's footer."""
        self._require(key)
        return int(pq.read_metadata(self.rejects_path(key)).num_rows)

    def inputs(self, key: TableKey) -> str | None:
        """The digest of what the table was made from; None when it is not there."""
        if not self.exists(key) or not self.rejects_path(key).exists():
            return None
        return str(self._footer(key).metadata[_INPUTS].decode())

    def facts(self, key: TableKey) -> Any:
        """What the stage said of itself."""
        return json.loads(self._footer(key).metadata[_FACTS])

    def fingerprint(self, key: TableKey) -> str:
        """Digest of the table's and its rejects' rows: changes when, and only when, a consumer could notice.

        What the table was made from and the stage's facts are not part of it.
        """
        self._require(key)
        return digest([_rows_digest(self.path(key)), _rows_digest(self.rejects_path(key))])

    def _require(self, key: TableKey) -> None:
        if not self.exists(key) or not self.rejects_path(key).exists():
            raise _missing(key)

    def _footer(self, key: TableKey) -> Any:
        self._require(key)
        return pq.read_metadata(self.path(key))

    def _batches(self, key: TableKey, names: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        self._require(key)
        with pq.ParquetFile(self.path(key), pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=None if names is None else list(names))

    def _load(self, path: Path, key: TableKey) -> pa.Table:
        if not path.exists():
            raise _missing(key)
        return pq.read_table(path, partitioning=None)


def _missing(key: TableKey) -> TableMissing:
    asset = "/".join(key.asset)
    # samples have other partitions than what is made of them: a launch has either
    selection = asset if asset == "samples" else f"+key:{asset} and not key:samples"
    return TableMissing(f"{key} is not materialised. Run: dg launch --assets '{selection}' --partition {key.partition}")


def _rows_digest(path: Path) -> str:
    """Digest of a file's pages: what precedes the footer, which holds the metadata, its length and 4 magic bytes."""
    remaining = path.stat().st_size - pq.read_metadata(path).serialized_size - 8
    pages = hashlib.sha256()
    with path.open("rb") as file:
        while remaining > 0:
            chunk = file.read(min(remaining, 1 << 20))
            pages.update(chunk)
            remaining -= len(chunk)
    return pages.hexdigest()


def _write_part(path: Path, kind: type[R], rows: Iterable[R], metadata: dict[bytes, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    for orphan in path.parent.glob(f".{path.name}.*"):
        orphan.unlink(missing_ok=True)  # left by a process that was killed while it wrote
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    remaining = iter(rows)
    groups = iter(lambda: list(islice(remaining, ROWS_PER_GROUP)), [])
    with pq.ParquetWriter(part, schema_of(kind).with_metadata(metadata), compression="zstd") as writer:
        for group in chain([next(groups, [])], groups):  # a table without rows has a row group, too
            writer.write_table(to_table(kind, group).replace_schema_metadata(metadata))
    return part
