"""Every table of a workspace as files to search: of thousands of shards only those are read that hold a row. Of an
object in a store the searched columns are read first, then the row groups that hold a row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from darkroom.pipelines.storage.row_files import footer
from darkroom.pipelines.storage.storage_errors import storage_errors
from darkroom.pipelines.storage.store_paths import StorePath, opened
from darkroom.pipelines.storage.tables import Tables

_PATH = "path of the file"


@dataclass(frozen=True)
class TableFile:
    """One parquet file below the tables' root. ``asset``: ``("crop", "drafts")``."""

    path: StorePath
    asset: tuple[str, ...]
    partition: str
    holds_rejects: bool

    @cached_property
    def columns(self) -> frozenset[str]:
        return frozenset(footer(self.path).schema.to_arrow_schema().names)

    def rows(self, condition: pl.Expr) -> list[dict[str, Any]]:
        with storage_errors(str(self.path)):
            rows = pl.scan_parquet(self.path) if isinstance(self.path, Path) else _groups_with(self.path, condition)
            return rows.filter(condition).collect().to_dicts()


def columns_of(paths: Sequence[StorePath], *names: str) -> pl.LazyFrame:
    """Some columns of parquet files, which are texts, one file after the other."""
    local = [path for path in paths if isinstance(path, Path)]
    if len(local) == len(paths):
        return _together(local, names)
    frames = []
    for path in paths:
        with opened(path, ahead=False) as source:
            frames.append(_frame(pq.read_table(source, columns=list(names), partitioning=None)))
    return pl.concat(frames)


def _together(paths: list[Path], names: Sequence[str], **options: Any) -> pl.LazyFrame:
    """A source may have thousands of shards: no other column is looked at. What a file has not is null."""
    schema = dict.fromkeys(names, pl.String())
    if not paths:
        return pl.LazyFrame(schema=schema)
    return pl.scan_parquet(paths, schema=schema, missing_columns="insert", extra_columns="ignore", **options)


def _groups_with(path: StorePath, condition: pl.Expr) -> pl.LazyFrame:
    """The row groups of an object in which the condition is true of a row."""
    with opened(path, ahead=False) as source, pq.ParquetFile(source, pre_buffer=True) as file:
        searched = _frame(file.read(columns=condition.meta.root_names()))
        places = searched.select(pl.arg_where(condition)).collect().to_series().to_numpy()
        ends = np.cumsum([file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)])
        return _frame(file.read_row_groups(np.unique(np.searchsorted(ends, places, side="right")).tolist()))


def _frame(table: Any) -> pl.LazyFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.lazy()


def table_files(tables: Tables) -> Iterator[TableFile]:
    """Every table and every table of rejects, without the tables that only collect other tables' rejects."""
    for key in tables.all_keys():
        if key.asset[-1] != "rejects":
            yield TableFile(tables.path(key), key.asset, key.partition, False)
            yield TableFile(tables.rejects_path(key), key.asset, key.partition, True)


def files_with(files: Sequence[TableFile], columns: Collection[str], condition: pl.Expr) -> list[TableFile]:
    """Files with the text ``columns`` that hold such a row, in order; every object in a store that has the columns."""
    local = [file.path for file in files if isinstance(file.path, Path)]
    if local:
        rows = _together(local, condition.meta.root_names(), include_file_paths=_PATH).filter(condition)
        try:
            paths = set(rows.select(_PATH).unique().collect()[_PATH])
        except pl.exceptions.ComputeError:
            for file in files:
                file.columns  # noqa: B018  # raises the error that names the damaged file
            raise
        files = [file for file in files if str(file.path) in paths]
    return [file for file in files if file.columns.issuperset(columns)]
