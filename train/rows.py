"""Reading a shipped dataset: the parquet files of a folder, with their columns checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from datasets import Dataset, load_dataset

from pipelines.export import FEATURES
from train.faults import TrainFault

ROWS_AT_ONCE = 16
"""Rows that are held in memory, with their images."""


def dataset_files(folder: Path) -> list[Path]:
    """The parquet files of a dataset folder but its validation split's. Raises ``TrainFault`` when there are none."""
    if not folder.is_dir():
        raise TrainFault(f"no dataset folder {folder}: materialise `sft_dataset`, or point --dataset at its folder")
    files = sorted(path for path in folder.rglob("*.parquet") if not path.name.startswith((".", "validation-")))
    if not files:
        raise TrainFault(f"{folder} holds no parquet file: materialise `sft_dataset` again")
    return files


def open_dataset(*folders: Path) -> Dataset:
    """The rows of dataset folders, memory-mapped. Raises ``TrainFault`` for wrong columns and for no rows."""
    if not count_rows(*folders):
        said = ", ".join(map(str, folders))
        raise TrainFault(f"{said} has no rows: every trajectory was rejected; look at the rejects of its recipes")
    names = [str(path) for folder in folders for path in dataset_files(folder)]
    return load_dataset("parquet", data_files={"train": names}, split="train", features=FEATURES)


def count_rows(*folders: Path) -> int:
    """How many rows there are, from the files' footers. Raises ``TrainFault`` for wrong columns."""
    files = [path for folder in folders for path in dataset_files(folder)]
    for path in files:
        _require_columns(path)
    return sum(int(pq.read_metadata(path).num_rows) for path in files)


def rows_with_images(*folders: Path) -> Iterator[dict[str, Any]]:
    """The same rows in the same order, with images as the bytes that are stored and videos' names only."""
    for path in (path for folder in folders for path in dataset_files(folder)):
        file = pq.ParquetFile(path)
        leaves = [column.path for column in map(file.schema.column, range(len(file.schema)))]
        wanted = [leaf for leaf in leaves if not (leaf.startswith("videos.") and leaf.endswith(".bytes"))]
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=wanted):
            yield from batch.to_pylist()


def rows_without_pixels(folder: Path) -> Iterator[dict[str, Any]]:
    """The same rows in the same order, with the images' and videos' names only: for passes over everything."""
    files = dataset_files(folder)
    for path in files:
        _require_columns(path)
    return without_pixels(files)


def without_pixels(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """The rows of parquet files, of images and videos their names only."""
    for path in files:
        file = pq.ParquetFile(path)
        leaves = [column.path for column in map(file.schema.column, range(len(file.schema)))]
        wanted = [leaf for leaf in leaves if not (leaf.startswith(("images.", "videos.")) and leaf.endswith(".bytes"))]
        for batch in file.iter_batches(batch_size=256, columns=wanted):
            yield from batch.to_pylist()


def presented(dataset: Dataset, present: Callable[[dict[str, Any]], dict[str, Any]]) -> Dataset:
    """``dataset`` with every row turned into ``present(row)`` when it is read, never before.

    A stored column of messages would have to pass through Arrow, which fills every part with None for the keys that
    other parts have.
    """

    def transform(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        shown = [present(row) for row in rows]
        return {name: [row[name] for row in shown] for name in shown[0]}

    return dataset.with_transform(transform)


def _require_columns(path: Path) -> None:
    expected, found = set(FEATURES), set(pq.read_schema(path).names)
    if found != expected:
        raise TrainFault(
            f"{path} has other columns than a shipped dataset: missing {sorted(expected - found)}, "
            f"unknown {sorted(found - expected)}; write it with pipelines.export.write_dataset"
        )
