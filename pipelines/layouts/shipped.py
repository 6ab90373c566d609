"""Reading a shipped dataset: which folders a name stands for, and their rows with their images, a few at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.layouts.faults import LayoutFault

ALL = "all"
ROWS_AT_ONCE = 16
"""Rows that are held in memory, with their images."""
NEEDED = {
    *("trajectory_id", "family", "protocol", "category", "question", "choices", "images", "n_question_images"),
    *("rounds", "final_thought", "answer", "loss_policy", "mode", "image_refs"),
}
_FILE = re.compile(r"(.+)-\d{5}-of-\d{5}\.parquet")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset to export: its name and the parquet files of one split, in order."""

    name: str
    split: str
    files: tuple[Path, ...]

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows. An image is ``{"bytes": …, "path": …}``."""
        for path in self.files:
            for batch in pq.ParquetFile(path).iter_batches(batch_size=ROWS_AT_ONCE):
                yield from batch.to_pylist()


def find(dataset: str, datasets: Path, *, split: str) -> Dataset:
    """The dataset that a user names: a family in ``datasets``, ``all`` of them, or a folder.

    Raises ``LayoutFault`` when there is none, when it lacks the split, and when it is not a shipped dataset.
    """
    folder = Path(dataset)
    if dataset == ALL:
        name, folders = ALL, sorted(path for path in datasets.glob("*") if _splits(path))
    elif (datasets / dataset).is_dir() and len(Path(dataset).parts) == 1:
        name, folders = dataset, [datasets / dataset]
    elif folder.is_dir():
        name, folders = folder.resolve().name, [folder]
    else:
        there = ", ".join(sorted(path.name for path in datasets.glob("*"))) or "none"
        raise LayoutFault(f"no dataset {dataset!r}: name a folder, {ALL!r}, or one of the families there are: {there}")
    files = tuple(path for part in folders for path in _splits(part).get(split, ()))
    if not files:
        splits = sorted({name for part in folders for name in _splits(part)})
        raise LayoutFault(
            f"{dataset!r} has no split {split!r}; it has {', '.join(splits)}"
            if splits
            else f"{dataset!r} holds no parquet file of a shipped dataset: materialise `sft_dataset` first"
        )
    for path in files:
        _require_columns(path)
    return Dataset(name, split, files)


def _splits(folder: Path) -> dict[str, list[Path]]:
    """The files of every split, by name."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.parquet")):
        if (name := _FILE.fullmatch(path.name)) and not path.name.startswith("."):
            found.setdefault(name[1], []).append(path)
    return found


def _require_columns(path: Path) -> None:
    missing: Sequence[str] = sorted(NEEDED - set(pq.read_schema(path).names))
    if missing:
        raise LayoutFault(f"{path} is no shipped dataset of trajectories: it lacks {', '.join(missing)}")
