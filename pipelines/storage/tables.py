"""Tables: ``<root>/<asset>/<partition>.parquet`` and, beside it, ``<partition>.rejects.parquet``.

A table is written whole or not at all, rejects first (an older table goes before them), so a table that is there is a
finished stage. Its parquet metadata holds the digest of its inputs: a stage whose inputs are what they were is not run
again. Rows are written as they come, ``table_files.ROWS_PER_GROUP`` in memory at a time.

On an object store nothing can be renamed, and one upload is seen whole or not at all. There rejects are named by their
content, ``<partition>.<digest>.rejects.parquet``, and the table, uploaded last, says which are its own: of writers at
the same time the last one's table counts, with its own rejects; an earlier table is there until then.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from upath import UPath

from darkroom.pipelines.records import Reject
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import upgraded_counts
from darkroom.pipelines.records.schemas import from_table
from darkroom.pipelines.storage.atomic_write import one_at_a_time
from darkroom.pipelines.storage.row_files import file_digest, footer, rows_digest, write_part
from darkroom.pipelines.storage.storage_errors import storage_errors
from darkroom.pipelines.storage.store_paths import StorePath, children, has_file, opened, remove_file, upload, whole
from darkroom.sandbox.errors import UserError

R = TypeVar("R")
_ROWS_AT_ONCE = 256
_INPUTS, _FACTS = b"darkroom.inputs", b"darkroom.facts"
_REJECTS, _ROWS = b"darkroom.rejects", b"darkroom.rows"
"""Of a table in an object store: the name of its rejects' file, and the digest of its rows and theirs."""
_SUFFIX, _LOCK = ".rejects", ".writing.lock"
Mask = NDArray[np.bool_]
"""Of every row in its order whether it is meant."""


class TableMissing(UserError):
    """A stage's input has not been materialised."""


class TableStale(UserError):
    """A stage's input was made from something that has changed since; says what to materialise again."""


class TableReplaced(TableStale):
    """Another run made a stage's input again, with other settings, while this one worked with it."""

    def __init__(self, key: "TableKey") -> None:
        super().__init__(
            f"{key} was replaced by another run with other settings while this one worked on it: give teams and "
            "experiments a DARKROOM_HOME each, or wait for the other run, then run again; with one DARKROOM_LEDGER "
            "nothing is paid twice"
        )


_WHOLE: Mapping[tuple[str, ...], str] = {
    ("annotation_pool",): "darkroom annotate sync",
    ("sft_dataset",): "darkroom materialize SOURCE",
    ("rl_dataset",): "darkroom rl SOURCE",
}
"""What makes a table that has no shards."""


@dataclass(frozen=True, slots=True)
class TableKey:
    """Key of a table: the asset's path (``("crop", "drafts")``) and the partition."""

    asset: tuple[str, ...]
    partition: str

    def __str__(self) -> str:
        return f"{'/'.join(self.asset)} [{self.partition}]"

    @property
    def command(self) -> str:
        """Command that makes it: a stage's table is made with all of its source."""
        source = re.fullmatch(r"(.+)-\d{4,}", self.partition)
        if source is None:
            return _WHOLE.get(self.asset, f"darkroom ui, and materialise {self.asset[0]} there")
        if len(self.asset) > 1:
            return f"darkroom materialize {source[1]} --family {self.asset[0]}"
        build, rl = f"darkroom materialize {source[1]}", f"darkroom rl {source[1]}"
        return f"{build} (for RL: {rl})" if self.asset == ("samples",) else rl


class Tables:
    """The tables below one folder, or one prefix of an object store. ``scratch``: the local folder in which what is
    uploaded, or waits on disk, is written first; default: the root."""

    def __init__(self, root: StorePath, scratch: Path | None = None) -> None:
        self.root = root
        self.scratch = scratch or (root if isinstance(root, Path) else Path(tempfile.gettempdir()))

    def path(self, key: TableKey) -> StorePath:
        return self.root.joinpath(*key.asset, f"{key.partition}.parquet")

    def rejects_path(self, key: TableKey) -> StorePath:
        """Path of the table's rejects, whether or not they exist."""
        metadata = None if isinstance(self.root, Path) else self._metadata(key)
        return self._rejects_path(key, metadata or {})

    def _rejects_path(self, key: TableKey, metadata: Mapping[bytes, bytes]) -> StorePath:
        return self.path(key).with_name(metadata.get(_REJECTS, f"{key.partition}{_SUFFIX}.parquet".encode()).decode())

    def write(
        self, key: TableKey, kind: type[R], rows: Iterable[R], rejects: Iterable[Reject], *, inputs: str, facts: Any
    ) -> None:
        """Write rows and rejects with a digest of their inputs and the stage's ``facts``. Raises ``StorageError``."""
        metadata = {_INPUTS: inputs.encode(), _FACTS: json.dumps(facts, sort_keys=True).encode()}
        path = self.path(key)
        with storage_errors(str(path)):
            if isinstance(path, UPath):
                self._upload(path, key, kind, rows, rejects, metadata)
                return
            rejects_path = path.with_name(f"{key.partition}{_SUFFIX}.parquet")
            rejects_part = write_part(rejects_path, Reject, rejects, metadata)
            part = write_part(path, kind, rows, metadata)
            # of two that write one table, it would be the one's with the other's rejects
            with one_at_a_time(path.parents[len(key.asset)] / _LOCK):
                path.unlink(missing_ok=True)
                os.replace(rejects_part, rejects_path)
                os.replace(part, path)

    def _upload(
        self,
        path: UPath,
        key: TableKey,
        kind: type[R],
        rows: Iterable[R],
        rejects: Iterable[Reject],
        metadata: Mapping[bytes, bytes],
    ) -> None:
        self.scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.scratch, prefix=".table-") as folder:
            rejects_part = write_part(Path(folder) / "rejects", Reject, rejects, metadata)
            name = f"{key.partition}.{file_digest(rejects_part)[:16]}{_SUFFIX}.parquet"
            of_rejects = rows_digest(rejects_part)

            def own_facts(part: Path) -> dict[bytes, bytes]:
                return {_REJECTS: name.encode(), _ROWS: digest([file_digest(part), of_rejects]).encode()}

            part = write_part(Path(folder) / "table", kind, rows, metadata, footer=own_facts)
            earlier = self._metadata(key)
            upload(rejects_part, path.with_name(name))
            upload(part, path)
            if earlier is not None and (old := self._rejects_path(key, earlier)).name != name:
                remove_file(old)

    def read(self, key: TableKey, kind: type[R]) -> list[R]:
        """The rows. Raises ``TableMissing``, naming the asset to materialise."""
        return from_table(kind, self._load(self.path(key), key))

    def stream(self, key: TableKey, kind: type[R], *, mask: Mask | None = None) -> Iterator[R]:
        """The rows (``mask``: those of them), a few in memory at a time. Raises ``TableMissing``."""
        begin = 0
        for batch in self._batches(self.path(key), key):
            end = begin + batch.num_rows
            yield from from_table(kind, batch if mask is None else batch.filter(pa.array(mask[begin:end])))
            begin = end

    def columns(self, key: TableKey, *names: str) -> Iterator[Any]:
        """Stream some columns as a tuple of plain objects per row. Raises ``TableMissing``."""
        for batch in self._batches(self.path(key), key, names):
            yield from zip(*(batch[name].to_pylist() for name in names), strict=True)

    def stream_rejects(self, key: TableKey) -> Iterator[Reject]:
        """The rejects of the stage, a few in memory at a time. Raises ``TableMissing``."""
        for batch in self._batches(self.rejects_path(key), key):
            yield from from_table(Reject, batch)

    def read_rejects(self, key: TableKey) -> list[Reject]:
        """The rejects of the stage. Raises ``TableMissing``."""
        return from_table(Reject, self._load(self.rejects_path(key), key))

    def exists(self, key: TableKey) -> bool:
        """True if the stage has finished for this partition."""
        path = self.path(key)
        with storage_errors(str(path)):
            return has_file(path)

    def existing(self, keys: Iterable[TableKey]) -> list[TableKey]:
        """Select the finished ones, in their order, by one listing of each asset."""
        wanted_keys = list(keys)
        there = {key for asset in {wanted.asset for wanted in wanted_keys} for key in self.keys(asset)}
        return [key for key in wanted_keys if key in there]

    def keys(self, asset: tuple[str, ...]) -> list[TableKey]:
        """The finished tables of an asset, by their partitions' names."""
        folder = self.root.joinpath(*asset)
        with storage_errors(str(folder)):
            names = [path.stem for path in children(folder) if path.suffix == ".parquet" and path.name[0] != "."]
        return [TableKey(asset, name) for name in sorted(names) if not name.endswith(_SUFFIX)]

    def families(self) -> list[str]:
        """The first parts of the assets' names: families, and assets without one."""
        with storage_errors(str(self.root)):
            return [folder.name for folder in children(self.root) if folder.name[0] != "."]

    def all_keys(self) -> list[TableKey]:
        """Every finished table, by one walk."""
        with storage_errors(str(self.root)):
            paths = sorted(str(path) for path in self.root.rglob("[!.]*.parquet"))
        below = [path[len(str(self.root)) + 1 :].removesuffix(".parquet").split("/") for path in paths]
        return [TableKey(tuple(asset), name) for *asset, name in below if not name.endswith(_SUFFIX)]

    def n_rows(self, key: TableKey) -> int:
        """Rows in the table, from the file's footer."""
        return int(self._footer(key).num_rows)

    def n_rejects(self, key: TableKey) -> int:
        return int(self._footer(key, self.rejects_path(key)).num_rows)

    def inputs(self, key: TableKey) -> str | None:
        """The digest of what the table was made from; None when it is not there."""
        metadata = self._metadata(key)
        if metadata is None or not has_file(self._rejects_path(key, metadata)):
            return None
        return metadata[_INPUTS].decode()

    def facts(self, key: TableKey) -> Any:
        return upgraded_counts(json.loads(self._footer(key).metadata[_FACTS]))

    def fingerprint(self, key: TableKey) -> str:
        """Digest of the table's and its rejects' rows: changes when, and only when, a consumer could notice. What the
        table was made from and the stage's facts are not part of it."""
        if (stated := self._footer(key).metadata.get(_ROWS)) is not None:
            return str(stated.decode())
        return digest([rows_digest(self.path(key)), rows_digest(self.rejects_path(key))])

    def _metadata(self, key: TableKey) -> dict[bytes, bytes] | None:
        """Metadata of the table's footer; None when it is not there."""
        try:
            metadata: dict[bytes, bytes] = self._footer(key).metadata
        except TableMissing:
            return None
        return metadata

    def _footer(self, key: TableKey, path: StorePath | None = None) -> Any:
        """Metadata of the table's file, or of another ``path`` of its key's."""
        with self._errors(key):
            return footer(path or self.path(key))

    def _batches(self, path: StorePath, key: TableKey, names: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        some = names is not None
        with self._errors(key), opened(path, ahead=not some) as source, pq.ParquetFile(source, pre_buffer=some) as file:
            yield from file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=None if names is None else list(names))

    @contextmanager
    def _errors(self, key: TableKey) -> Iterator[None]:
        """A file that is not there is a ``TableMissing``. Locally a table without its rejects is none either."""
        try:
            with storage_errors(str(self.path(key))):
                if isinstance(self.root, Path) and not self._rejects_path(key, {}).exists():
                    raise _missing(key)
                yield
        except FileNotFoundError:
            raise _missing(key) from None

    def _load(self, path: StorePath, key: TableKey) -> pa.Table:
        with self._errors(key):
            return pq.read_table(whole(path), partitioning=None)


def check_fingerprint(tables: Tables, key: TableKey, fingerprint: str) -> None:
    """Raises ``TableReplaced`` where a table has not this fingerprint any more."""
    if tables.fingerprint(key) != fingerprint:
        raise TableReplaced(key)


def _missing(key: TableKey) -> TableMissing:
    return TableMissing(f"{key} is not materialised. Run: {key.command}")
