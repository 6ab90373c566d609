"""Every table of a workspace as files to search: of thousands of shards only those are read that hold a row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.storage.places import Place, whole
from pipelines.storage.storage_errors import storage_errors
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
        with storage_errors(str(self.path)):
            return frozenset(pl.read_parquet_schema(whole(self.path)))

    def rows(self, condition: pl.Expr) -> list[dict[str, Any]]:
        with storage_errors(str(self.path)):
            return pl.scan_parquet(whole(self.path)).filter(condition).collect().to_dicts()


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
