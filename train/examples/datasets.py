"""The datasets that training reads: their files, checked before anything is loaded, opened with ``datasets``."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from datasets import Dataset, load_dataset

from pipelines.publishing import dataset_reader
from pipelines.publishing.dataset_reader import DatasetError, Kind
from pipelines.publishing.features import TRAJECTORIES
from train.runs import TrainError


def dataset_files(*folders: Path) -> list[Path]:
    """The parquet files of dataset folders but their validation splits'. Raises ``TrainError`` for a folder without."""
    return [file for folder in folders for file in _files_of(folder)]


def open_dataset(*folders: Path) -> Dataset:
    """The rows of dataset folders, memory-mapped. Raises ``TrainError`` for wrong columns and for no rows."""
    if not count_rows(*folders):
        names = ", ".join(map(str, folders))
        raise TrainError(f"{names} has no rows: every trajectory was rejected; look at the rejects of its recipes")
    files = [str(file) for file in dataset_files(*folders)]
    return load_dataset("parquet", data_files={"train": files}, split="train", features=TRAJECTORIES)


def count_rows(*folders: Path) -> int:
    """How many rows there are, from the files' footers. Raises ``TrainError`` for wrong columns."""
    files = dataset_files(*folders)
    require_columns(files, "trajectories")
    return dataset_reader.n_rows_of(files)


def require_columns(files: Iterable[Path], kind: Kind) -> None:
    """Raises ``TrainError`` for a file that has other columns than a shipped dataset of its kind."""
    try:
        for file in files:
            dataset_reader.check_columns(file, kind)
    except DatasetError as error:
        raise TrainError(str(error)) from error


def presented(dataset: Dataset, present: Callable[[dict[str, Any]], dict[str, Any]]) -> Dataset:
    """``dataset`` with every row turned into ``present(row)`` when it is read, never before.

    A stored column of messages would have to pass through Arrow, which fills every part with None for the keys that
    other parts have.
    """

    def transform(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        changed = [present(row) for row in rows]
        return {name: [row[name] for row in changed] for name in changed[0]}

    return dataset.with_transform(transform)


def _files_of(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise TrainError(f"no dataset folder {folder}: materialise `sft_dataset`, or point --dataset at its folder")
    files = dataset_reader.dataset_files(folder, nested=True)
    training = [file for file in files if dataset_reader.split_of(file) != "validation"]
    if not training:
        raise TrainError(f"{folder} holds no parquet file: materialise `sft_dataset` again")
    return training
