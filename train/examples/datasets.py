"""The datasets that training reads: their files, checked before anything is loaded, opened with ``datasets``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow.parquet as pq
from datasets import Dataset, Image, List, load_dataset

from darkroom.pipelines.publishing import dataset_reader
from darkroom.pipelines.publishing.features import TRAJECTORIES, check_columns
from darkroom.train.runs import TrainError
from darkroom.train.runs.options import local_datasets, require_dataset

Part = Literal["train", "held_out"]
"""``held_out`` is the split ``validation``, ``train`` all others."""


def dataset_files(*folders: Path, part: Part = "train") -> list[Path]:
    """List the parquet files of a part of dataset folders. Raises ``TrainError`` for a folder without."""
    files: list[Path] = []
    for folder in folders:
        if not (of_part := _files_of(folder, part)):
            raise TrainError(f"{folder} holds no parquet file. Run: darkroom materialize SOURCE")
        files += of_part
    return files


def open_dataset(*folders: Path, part: Part = "train") -> Dataset:
    """Open the rows of dataset folders, memory-mapped. Raises ``TrainError`` for no rows, and as ``count_rows``."""
    if not count_rows(*folders, part=part):
        names = ", ".join(map(str, folders))
        raise TrainError(f"{names} has no rows: every trajectory was rejected; look at the rejects of its recipes")
    files = [str(file) for file in dataset_files(*folders, part=part)]
    return load_dataset("parquet", data_files={"train": files}, split="train", features=TRAJECTORIES)


def count_rows(*folders: Path, part: Part = "train") -> int:
    """Count the rows by the files' footers. Raises ``DatasetError`` for wrong columns."""
    files = dataset_files(*folders, part=part)
    for file in files:
        check_columns(file, "trajectories")
    return dataset_reader.n_rows_of(files)


class HeldOut(NamedTuple):
    """The rows of an evaluation during training."""

    folders: tuple[Path, ...]
    part: Part


def held_out(datasets: Sequence[Path], chosen: str, *, trained: Sequence[Path]) -> HeldOut:
    """The held-out rows of ``datasets``; or those of the folder ``chosen``, all where it has none held out. Raises
    ``TrainError`` where there are none, and for questions that ``trained`` datasets train on."""
    folders = tuple(local_datasets([chosen])) if chosen else tuple(datasets)
    with_rows = tuple(folder for folder in folders if dataset_reader.n_rows_of(_files_of(folder, "held_out")))
    if with_rows:
        rows = HeldOut(with_rows, "held_out")
    elif chosen:
        rows = HeldOut(folders, "train")
    else:
        names = ", ".join(map(str, folders))
        raise TrainError(f"{names} has no held-out rows (validation-*.parquet): name others with --eval-dataset")
    evaluated = _questions(dataset_files(*rows.folders, part=rows.part))
    if both := evaluated & _questions(dataset_files(*trained)):
        found = f"{len(both)} of {len(evaluated)} questions to evaluate on are trained on, {min(both)} for one"
        raise TrainError(f"{found}: name others with --eval-dataset")
    return rows


def _questions(files: Sequence[Path]) -> set[str]:
    return {name for file in files for name in pq.read_table(file, columns=["sample_id"])["sample_id"].to_pylist()}


def presented(dataset: Dataset, present: Callable[[dict[str, Any]], dict[str, Any]], *, decode: bool = True) -> Dataset:
    """Turn every row of ``dataset`` into ``present(row)`` when it is read, since Arrow would fill every part of a
    message with None for others' keys. Without ``decode`` images are as stored, ``{"bytes": …, "path": …}``."""

    def transform(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        changed = [present(row) for row in rows]
        return {name: [row[name] for row in changed] for name in changed[0]}

    if not decode:
        dataset = dataset.cast_column("images", List(Image(decode=False)))
    return dataset.with_transform(transform)


def _files_of(folder: Path, part: Part) -> list[Path]:
    require_dataset(folder)
    files = dataset_reader.dataset_files(folder, nested=True)
    return [file for file in files if (dataset_reader.split_of(file) == "validation") == (part == "held_out")]
