"""Hugging Face datasets (hub name or local folder) and parquet files, streamed by shard through ``datasets``.

A shard is a set of the dataset's files: there are never more shards than files. Images are never decoded here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.digest import digest
from pipelines.sources.base import BadRow, SourceRow
from pipelines.sources.faults import SourceFault
from pipelines.sources.mapping import Columns, map_row

_BATCH = 16
"""Rows in memory at once: each may hold images of many megabytes."""

_FAULTS = (
    OSError,
    ValueError,
    datasets.exceptions.DatasetsError,
)  # ConnectionError, ArrowInvalid and others among them


class TabularSource:
    """Rows of a dataset that ``datasets.load_dataset`` can stream.

    ``path`` is a hub name, a local dataset folder, or (``parquet=True``) a parquet file or a folder of them.
    """

    def __init__(
        self,
        name: str,
        path: str,
        columns: Columns,
        *,
        parquet: bool = False,
        config: str | None = None,
        split: str = "train",
        revision: str | None = None,
        n_shards: int = 1,
        license: str = "",
    ) -> None:
        self.name, self._path, self._columns, self._license = name, path, columns, license
        self._parquet, self._config, self._split, self._revision = parquet, config, split, revision
        self._asked_shards = n_shards

    @property
    def n_shards(self) -> int:
        """As many as were asked for, at most one per file."""
        return self._asked_shards

    @property
    def fingerprint(self) -> str:
        """Changes with the local files, or with the revision on the hub, and with the mapping."""
        return digest(
            [
                [self.name, self._path, self._config, self._split, self._revision],
                self._columns.model_dump(),
                self._asked_shards,
                self._license,
                [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self._files()],
            ]
        )

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """The rows of the shard's files, in order."""
        stream = self._stream
        columns = self._column_names(stream)
        missing = [column for column in self._columns.used() if column not in columns]
        if missing:
            raise SourceFault(
                f"source {self.name!r}: {self._path} has no column {', '.join(map(repr, missing))}; "
                f"it has {', '.join(map(repr, columns))}. Name the right ones in the mapping"
            )
        if self._asked_shards > stream.num_shards:
            raise SourceFault(
                f"source {self.name!r}: {self._asked_shards} shards of {stream.num_shards} files; "
                f"set n_shards to {stream.num_shards} or less"
            )
        part = stream.shard(num_shards=self._asked_shards, index=shard) if self._asked_shards > 1 else stream
        folder = Path(self._path) if Path(self._path).is_dir() else Path(self._path).parent
        for number, row in enumerate(row for table in self._tables(part) for row in table.to_pylist()):
            where = str(row[self._columns.row_id]) if self._columns.row_id else f"{self._split}/{shard}/{number}"
            yield map_row(row, self._columns, where=where, folder=folder, license=self._license)

    def _column_names(self, stream: Any) -> list[str]:
        return stream.column_names or next((table.column_names for table in self._tables(stream)), [])

    def _tables(self, stream: Any) -> Iterator[pa.Table]:
        try:
            yield from stream.iter(batch_size=_BATCH)
        except _FAULTS as fault:
            raise SourceFault(f"source {self.name!r}: cannot read {self._damaged() or self._path}: {fault}") from fault

    def _damaged(self) -> Path | None:
        """The first local parquet file that cannot be read to its end."""
        return next((path for path in self._files() if path.suffix == ".parquet" and not _is_sound(path)), None)

    def _files(self) -> list[Path]:
        path = Path(self._path)
        if path.is_dir():
            return [file for file in sorted(path.rglob("*")) if file.is_file()]
        return [path] if path.is_file() else []

    @cached_property
    def _stream(self) -> Any:
        """Rows as Arrow tables: in them images are the bytes or the path that the files hold."""
        try:
            return self._load().with_format("arrow")
        except _FAULTS as fault:
            raise SourceFault(
                f"source {self.name!r}: cannot load {self._damaged() or self._path}: {fault}. It is neither a local "
                "path that can be read nor a dataset on a hub that can be reached"
            ) from fault

    def _load(self) -> Any:
        if not self._parquet:
            return datasets.load_dataset(
                self._path, self._config, split=self._split, revision=self._revision, streaming=True
            )
        files = [str(path) for path in self._files() if path.suffix == ".parquet"]
        if not files:
            raise SourceFault(f"source {self.name!r}: there are no parquet files at {self._path}")
        return datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)


def _is_sound(path: Path) -> bool:
    try:
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches(_BATCH):
                pass
    except (OSError, ValueError):
        return False
    return True
