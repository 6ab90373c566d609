"""Evaluation on held-out rows during training: its settings, the best evaluation so far, and when to stop.

    darkroom train sft … --eval-every 50 --early-stop 3 --keep-best

All decisions follow from the values that the trainer has logged, which its checkpoints hold: a resumed training decides
as an uninterrupted one.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, Self

from pydantic import Field, model_validator

from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import ProgramSettings

HELD_OUT_FIELDS = frozenset({"eval_every", "eval_dataset", "eval_limit", "early_stop", "keep_best"})


class Metric(NamedTuple):
    """A column of the trainer's log that evaluations are compared by."""

    name: str
    larger_is_better: bool
    words: str


METRICS = {
    "sft": Metric("eval_loss", False, "held-out loss"),
    "grpo": Metric("eval_accuracy", True, "held-out accuracy"),
}
"""The metrics by program."""


class HeldOutSettings(ProgramSettings):
    """Settings of evaluations during training. Raises ``TrainError`` for settings that have no effect."""

    eval_every: int = Field(default=0, ge=0)
    """Evaluate on held-out rows every so many steps, and after the last. 0: never."""
    eval_dataset: str = ""
    """Folder of the rows to evaluate on: its held-out ones, or all where it has none; default: those of --dataset."""
    eval_limit: int | None = Field(default=None, ge=1)
    """Evaluate on so many of these rows, evenly spread; default: all."""
    early_stop: int = Field(default=0, ge=0)
    """Stop after so many evaluations in sequence that are no better. 0: never."""
    keep_best: bool = False
    """Save the weights of the best evaluation instead of the last step's."""

    @model_validator(mode="after")
    def _evaluates(self) -> Self:
        unused = sorted(name for name in HELD_OUT_FIELDS - {"eval_every"} if getattr(self, name))
        if unused and not self.eval_every:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in unused)
            raise TrainError(f"{names} needs evaluations: set --eval-every, the number of steps between them")
        return self

    def is_due(self, step: int, n_steps: int) -> bool:
        return bool(self.eval_every) and step > 0 and (step % self.eval_every == 0 or step == n_steps)

    def ends(self, evaluations: "Evaluations") -> bool:
        return bool(self.early_stop) and evaluations.n_without_improvement >= self.early_stop


class Evaluation(NamedTuple):
    """The metric's value after a step."""

    step: int
    value: float


@dataclass(frozen=True, slots=True)
class Evaluations:
    """The evaluations of a training, in order."""

    done: tuple[Evaluation, ...]
    larger_is_better: bool

    @classmethod
    def of_log(cls, log: Iterable[Mapping[str, Any]], metric: Metric) -> Self:
        """Read the entries of a trainer's log, or the steps of a ``training.json``."""
        entries = (Evaluation(entry["step"], float(entry[metric.name])) for entry in log if metric.name in entry)
        return cls(tuple(entries), metric.larger_is_better)

    @property
    def best(self) -> Evaluation | None:
        """The first of the best; a value that is no number is never the best."""
        numbers = [evaluation for evaluation in self.done if not math.isnan(evaluation.value)]
        choose = max if self.larger_is_better else min
        return choose(numbers, key=lambda evaluation: evaluation.value) if numbers else None

    @property
    def n_without_improvement(self) -> int:
        best = self.best
        return len(self.done) if best is None else len(self.done) - 1 - self.done.index(best)

    def has(self, step: int) -> bool:
        return any(evaluation.step == step for evaluation in self.done)


def evaluation_record(steps: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], program: str) -> dict[str, Any]:
    """Record for ``training.json``: the best evaluation of each phase, and the weights that were saved.

    {"metric": "eval_loss", "saved": "best", "phases": [{"phase": "all", "evaluations": 4, "best_step": 30,
     "best_value": 0.41, "saved_step": 30, "stopped_early": true}]}
    """
    metric, phases = METRICS[program], []
    for phase, entries in groupby(steps, key=lambda step: step.get("phase", "all")):
        of_phase = list(entries)
        evaluations, last = Evaluations.of_log(of_phase, metric), of_phase[-1]["step"]
        best, patience = evaluations.best, settings.get("early_stop", 0)
        record = {"phase": phase, "evaluations": len(evaluations.done)}
        record |= {"best_step": best and best.step, "best_value": best and best.value}
        record["saved_step"] = best.step if best and settings.get("keep_best") else last
        record["stopped_early"] = bool(patience) and evaluations.n_without_improvement >= patience
        phases.append(record)
    return {"metric": metric.name, "saved": "best" if settings.get("keep_best") else "last", "phases": phases}


def spread(n_rows: int, limit: int | None) -> list[int]:
    """Indices of at most ``limit`` of ``n_rows`` rows, evenly spread."""
    n = n_rows if limit is None else min(limit, n_rows)
    return [number * n_rows // n for number in range(n)]


class Share(NamedTuple):
    """The rows of one process in a forward pass; ``counts`` is false of a row that only keeps the processes alike."""

    rows: tuple[int, ...]
    counts: bool


def shares(n_rows: int, size: int, accelerator: Any) -> list[Share]:
    """Split rows over the processes in batches; pad so that all run the same number of batches."""
    process, n_processes = accelerator.process_index, accelerator.num_processes
    starts = [start + process * size for start in range(0, n_rows, size * n_processes)]
    mine = [tuple(range(min(start, n_rows), min(start + size, n_rows))) for start in starts]
    return [Share(rows, True) if rows else Share((0,), False) for rows in mine]
