"""What determines an SFT checkpoint besides its datasets and its model, and how much of a batch a process takes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from train.conversations import Layout
from train.faults import TrainFault


@dataclass(frozen=True, slots=True)
class Phase:
    """One stretch of training with its own schedule, from the weights that the one before it left.

    ``families`` are the datasets that it trains on, by the names of their folders; none are all. What is None is as the
    ``Arguments`` have it.
    """

    name: str = "all"
    families: tuple[str, ...] = ()
    learning_rate: float | None = None
    epochs: float | None = None
    max_steps: int | None = None
    warmup: float | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A phase with nothing left open."""

    name: str
    families: tuple[str, ...]
    learning_rate: float
    epochs: float
    max_steps: int
    warmup: float


_NUMBERS = {"learning_rate": float, "epochs": float, "max_steps": int, "warmup": float}
"""YAML reads 1e-5 as a text."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """``batch_size`` is that of a step, over all processes; ``per_device`` rows go through the model at a time.

    The defaults are those of Thyme's first phase, but for the batch, which is small.
    """

    recipe: str = ""
    layout: Layout = "turns"
    epochs: float = 3.0
    max_steps: int = -1
    batch_size: int = 4
    per_device: int | None = None
    learning_rate: float = 1e-5
    warmup: float = 0.05
    lora: int = 0
    freeze_vision: bool = False
    min_pixels: int | None = None
    max_pixels: int | None = None
    max_tokens: int | None = None
    train_observations: bool = False
    drop_nonconforming: bool = False
    skip_missing: bool = False
    seed: int = 0
    phases: tuple[Phase, ...] = (Phase(),)

    def __post_init__(self) -> None:
        if not self.phases or len({phase.name for phase in self.phases}) < len(self.phases):
            raise TrainFault("phases: expected one or more, each with a name of its own")

    @property
    def planned(self) -> tuple[Planned, ...]:
        """The phases, with nothing left open."""
        shared = {name: getattr(self, name) for name in _NUMBERS}
        said = [{name: value for name, value in asdict(phase).items() if value is not None} for phase in self.phases]
        return tuple(Planned(**{**shared, **phase}) for phase in said)

    @property
    def record(self) -> dict[str, Any]:
        """As JSON has it, with the phases as planned."""
        phases = [asdict(phase) for phase in self.planned]
        record: dict[str, Any] = json.loads(json.dumps({**asdict(self), "phases": phases}))
        return record


def read_phases(given: str, over: Mapping[str, Any] | None = None) -> tuple[Phase, ...]:
    """Phases from a JSON list of objects; ``over`` wins in every phase. Raises ``TrainFault`` for what is none."""
    known = [field.name for field in fields(Phase)]
    try:
        entries = json.loads(given)
        phases = tuple(_phase({**entry, **(over or {})}) for entry in entries)
    except (ValueError, TypeError) as fault:
        raise TrainFault(
            f"phases: expected a list of objects with {', '.join(known)}; found {given} ({fault})"
        ) from fault
    return phases


def folders_of(phase: Planned, datasets: Sequence[Path], *, skip_missing: bool = False) -> list[Path]:
    """The dataset folders that a phase trains on: of ``datasets``, each a dataset or a folder of several, its families.

    Raises ``TrainFault`` for families that are not there, unless they may be missing and another one is there.
    """
    found = {folder.name: folder for dataset in datasets for folder in _datasets_below(dataset)}
    if not found:
        raise TrainFault(
            f"no parquet file in {', '.join(map(str, datasets))}: materialise `sft_dataset`, or point --dataset at a "
            "folder with a dataset, or with several"
        )
    missing = [name for name in phase.families if name not in found]
    chosen = [found[name] for name in phase.families if name in found] if phase.families else list(found.values())
    if missing and not (skip_missing and chosen):
        raise TrainFault(
            f"phase {phase.name} trains on {', '.join(phase.families)}; there is no {', '.join(missing)} among "
            f"{', '.join(sorted(found))}: materialise them, or leave them out with --skip-missing"
        )
    return chosen


def share_of_batch(arguments: Arguments, *, processes: int | None = None) -> tuple[int, int]:
    """Rows that go through the model at a time, and how often before a step, in each of ``processes``.

    Raises ``TrainFault`` with the arithmetic when that does not come to ``batch_size``.
    """
    n = processes or int(os.environ.get("WORLD_SIZE", "1"))
    per_device = arguments.per_device or max(1, arguments.batch_size // n)
    accumulation = arguments.batch_size // (per_device * n)
    if per_device * accumulation * n != arguments.batch_size:
        raise TrainFault(
            f"a batch of {arguments.batch_size} rows is not {per_device} per device x {n} processes "
            f"= {per_device * n} rows, a whole number of times: {arguments.batch_size} / {per_device * n} = "
            f"{arguments.batch_size / (per_device * n):g}; change --batch-size, --per-device or the processes"
        )
    return per_device, accumulation


def _phase(entry: Mapping[str, Any]) -> Phase:
    if not isinstance(entry.get("name"), str):
        raise ValueError("a phase without a name")
    numbers = {name: kind(entry[name]) for name, kind in _NUMBERS.items() if entry.get(name) is not None}
    return Phase(**{**entry, **numbers, "families": tuple(entry.get("families") or ())})


def _datasets_below(folder: Path) -> list[Path]:
    """``folder`` if it holds parquet files itself, else those of its folders that do."""
    if not folder.is_dir():
        raise TrainFault(f"no dataset folder {folder}: materialise `sft_dataset`, or point --dataset at its folder")
    own = any(folder.glob("*.parquet"))
    return [folder] if own else [below for below in sorted(folder.glob("*/")) if any(below.glob("*.parquet"))]
