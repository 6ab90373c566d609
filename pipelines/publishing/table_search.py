"""Every table of a workspace as files to search: of thousands of shards only those are read that hold a row.

Of an object in a store the columns are read that are searched, then the row groups that hold a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from pipelines.storage.places import Place, opened
from pipelines.storage.storage_errors import storage_errors
from pipelines.storage.table_files import footer
from pipelines.storage.tables import Tables

_PATH = "path of the file"
_ANY_FIELDS = pl.ScanCastOptions(missing_struct_fields="insert", extra_struct_fields="ignore")
"""Of columns that are not read: earlier versions wrote fewer."""


@dataclass(frozen=True)
class TableFile:
    """One parquet file below the tables' root. ``asset``: ``("crop", "drafts")``."""

    path: Place
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


def columns_of(path: Place, *names: str) -> pl.LazyFrame:
    """Some columns of a parquet file."""
    if isinstance(path, Path):
        return pl.scan_parquet(path).select(names)
    with opened(path, ahead=False) as source:
        return _frame(pq.read_table(source, columns=list(names), partitioning=None))


def _groups_with(path: Place, condition: pl.Expr) -> pl.LazyFrame:
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
    """Those with ``columns`` that have such a row, in their order; in an object store all with the columns.

    Files of the same columns are read together, and no other column: a source may have thousands of shards.
    """
    groups: defaultdict[frozenset[str], dict[str, TableFile]] = defaultdict(dict)
    for file in files:
        if file.columns.issuperset(columns):
            groups[file.columns][str(file.path)] = file
    found: set[TableFile] = set()
    for group in groups.values():
        paths = [file.path for file in group.values() if isinstance(file.path, Path)]
        if len(paths) < len(group):
            found.update(group.values())
            continue
        rows = pl.scan_parquet(paths, include_file_paths=_PATH, cast_options=_ANY_FIELDS).filter(condition)
        names = rows.select(_PATH).unique().collect()
        found.update(group[name] for name in names[_PATH])
    return [file for file in files if file in found]
