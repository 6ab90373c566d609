"""Reading a shipped dataset: which folders a name stands for, and their rows with their images, a few at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq

from pipelines.layouts.base import Kind
from pipelines.layouts.faults import LayoutFault
from pipelines.protocols import PROTOCOLS

ALL, RL = "all", "rl"
ROWS_AT_ONCE = 16
"""Rows that are held in memory, with their images."""
DEFAULT_PROTOCOL = "thyme"
NEEDED: Mapping[Kind, frozenset[str]] = {
    "trajectories": frozenset(
        {
            *("trajectory_id", "family", "protocol", "category", "question", "choices", "images", "n_question_images"),
            *("rounds", "final_thought", "answer", "loss_policy", "mode", "image_refs"),
        }
    ),
    "prompts": frozenset(
        {
            *("sample_id", "question", "choices", "images", "image_refs", "video_refs", "answer", "grader", "boxes"),
            *("category", "difficulty", "pass_rate", "suitable", "necessity_prior", "source", "license"),
        }
    ),
}
"""The columns by which a dataset is known, and without which it cannot be exported."""
_FILE = re.compile(r"(.+)-\d{5}-of-\d{5}\.parquet")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset to export: its name and the parquet files of one split, in order."""

    name: str
    split: str
    files: tuple[Path, ...]
    kind: Kind = "trajectories"
    protocol: str = ""
    """For prompts: how they are asked, and in which of the protocol's modes. A trajectory names its own."""
    mode: str = ""

    @property
    def folder_name(self) -> str:
        """What an export of it is called."""
        return "_".join(filter(None, (self.name, self.protocol, self.mode if self.mode != "free" else "")))

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows. An image is ``{"bytes": …, "path": …}``; a prompt has its ``protocol`` and ``mode``, too."""
        asked = {"protocol": self.protocol, "mode": self.mode} if self.kind == "prompts" else {}
        for path in self.files:
            for batch in pq.ParquetFile(path).iter_batches(batch_size=ROWS_AT_ONCE):
                yield from (row | asked for row in batch.to_pylist())

    def asked(self, protocol: str | None, mode: str | None) -> Self:
        """The dataset with its prompts in ``protocol`` and ``mode``; without them in thyme's, and the protocol's first.

        Raises ``LayoutFault`` for what there is not, and for trajectories, which have a protocol of their own.
        """
        if self.kind == "trajectories":
            if protocol is not None or mode is not None:
                raise LayoutFault(f"{self.name} holds trajectories, each in its own protocol: leave --protocol away")
            return self
        name = protocol or DEFAULT_PROTOCOL
        if name not in PROTOCOLS:
            raise LayoutFault(f"--protocol is one of {', '.join(PROTOCOLS)}; found {name!r}")
        modes = PROTOCOLS[name].modes
        if mode is not None and mode not in modes:
            raise LayoutFault(f"--mode of {name} is one of {', '.join(modes)}; found {mode!r}")
        return replace(self, protocol=name, mode=mode or modes[0])


def find(dataset: str, datasets: Path, *, split: str, prompts: Path | None = None) -> Dataset:
    """The dataset that a user names: a family in ``datasets``, ``all`` of them, ``rl`` in ``prompts``, or a folder.

    Raises ``LayoutFault`` when there is none, when it lacks the split, and when it is not a shipped dataset.
    """
    folder = Path(dataset)
    if dataset == ALL:
        name, folders = ALL, sorted(path for path in datasets.glob("*") if _splits(path))
    elif (datasets / dataset).is_dir() and len(Path(dataset).parts) == 1:
        name, folders = dataset, [datasets / dataset]
    elif dataset == RL and prompts is not None:
        name, folders = RL, [prompts]
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
            else f"{dataset!r} holds no parquet file of a shipped dataset: materialise `{_asset(dataset)}` first"
        )
    kind = _kind(files[0])
    for path in files:
        _require_columns(path, kind)
    return Dataset(name, split, files, kind)


def _splits(folder: Path) -> dict[str, list[Path]]:
    """The files of every split, by name."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.parquet")):
        if (name := _FILE.fullmatch(path.name)) and not path.name.startswith("."):
            found.setdefault(name[1], []).append(path)
    return found


def _asset(dataset: str) -> str:
    return "rl_dataset" if dataset == RL else "sft_dataset"


def _kind(path: Path) -> Kind:
    """Prompts have graders, and no rollout."""
    found = set(pq.read_schema(path).names)
    return "prompts" if "grader" in found and "rounds" not in found else "trajectories"


def _require_columns(path: Path, kind: Kind) -> None:
    if missing := sorted(NEEDED[kind] - set(pq.read_schema(path).names)):
        raise LayoutFault(f"{path} is no shipped dataset of {kind}: it lacks {', '.join(missing)}")
