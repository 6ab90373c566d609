"""Hugging Face datasets (hub name or local folder) and parquet files, streamed by shard through ``datasets``.

A shard is a set of the dataset's files: there are never more shards than files. Images are never decoded here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import datasets

from pipelines.digest import digest
from pipelines.sources.base import BadRow, SourceRow
from pipelines.sources.faults import SourceFault
from pipelines.sources.mapping import Columns, map_row


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
                [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self._files()],
            ]
        )

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """The rows of the shard's files, in order."""
        stream = self._stream
        missing = [column for column in self._columns.used() if column not in stream.column_names]
        if missing:
            raise SourceFault(
                f"source {self.name!r}: {self._path} has no column {', '.join(map(repr, missing))}; "
                f"it has {', '.join(map(repr, stream.column_names))}. Name the right ones in the mapping"
            )
        if self._asked_shards > stream.num_shards:
            raise SourceFault(
                f"source {self.name!r}: {self._asked_shards} shards of {stream.num_shards} files; "
                f"set n_shards to {stream.num_shards} or less"
            )
        part = stream.shard(num_shards=self._asked_shards, index=shard) if self._asked_shards > 1 else stream
        folder = Path(self._path) if Path(self._path).is_dir() else Path(self._path).parent
        for number, row in enumerate(part):
            where = str(row[self._columns.row_id]) if self._columns.row_id else f"{self._split}/{shard}/{number}"
            yield map_row(row, self._columns, where=where, folder=folder, license=self._license)

    def _files(self) -> list[Path]:
        path = Path(self._path)
        if path.is_dir():
            return [file for file in sorted(path.rglob("*")) if file.is_file()]
        return [path] if path.is_file() else []

    @cached_property
    def _stream(self) -> Any:
        stream = self._load()
        if stream.features is None:
            stream = stream._resolve_features()
        for column, feature in (stream.features or {}).items():
            stream = stream.cast_column(column, _undecoded(feature))
        return stream

    def _load(self) -> Any:
        try:
            if self._parquet:
                files = [str(path) for path in self._files() if path.suffix == ".parquet"]
                if not files:
                    raise SourceFault(f"source {self.name!r}: there are no parquet files at {self._path}")
                return datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
            return datasets.load_dataset(
                self._path, self._config, split=self._split, revision=self._revision, streaming=True
            )
        except (FileNotFoundError, ValueError, ConnectionError, datasets.exceptions.DatasetsError) as fault:
            raise SourceFault(f"source {self.name!r}: cannot load {self._path}: {fault}") from fault


def _undecoded(feature: Any) -> Any:
    """The feature with images left as the bytes they are."""
    if isinstance(feature, datasets.Image):
        return datasets.Image(decode=False)
    if isinstance(feature, datasets.List):
        return datasets.List(_undecoded(feature.feature), length=feature.length)
    return feature
