"""Shipped datasets, read again: which folders a name means, and their rows as ``pipelines/export.py`` wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.tables import TableMissing

ALL = "all"
_ROWS_AT_ONCE = 8


def find_datasets(name: str, root: Path, *, may_be_empty: bool = False) -> list[Path]:
    """The folders that ``name`` means: a family below ``root``, ``all`` of them, or a folder of one or of several.

    Raises ``TableMissing``, naming the asset to materialise, when there is none, unless that may be.
    """
    at = root if name == ALL else root / name if (root / name).is_dir() else Path(name)
    found = [folder for folder in [at, *sorted(at.glob("*/"))] if _files(folder)]
    if not found and not may_be_empty:
        families = ", ".join(folder.name for folder in sorted(root.glob("*/")) if _files(folder)) or "none"
        raise TableMissing(
            f"{name!r} is neither a folder with a dataset nor a family that has one (there are: {families}). "
            "Run: dg launch --assets sft_dataset"
        )
    return found


def read_rows(folders: Sequence[Path], *, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """The rows of ``folders``, at most ``limit`` of each, with the images' bytes."""
    for folder in folders:
        yield from islice(_rows(folder), limit)


def count_rows(folders: Sequence[Path], *, limit: int | None = None) -> int:
    """How many rows ``read_rows`` gives, from the files' footers."""
    counts = [sum(int(pq.read_metadata(file).num_rows) for file in _files(folder)) for folder in folders]
    return sum(count if limit is None else min(count, limit) for count in counts)


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    for file in _files(folder):
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=_ROWS_AT_ONCE):
                yield from batch.to_pylist()


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))
