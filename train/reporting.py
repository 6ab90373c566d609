"""Tells whoever started the program how it goes: a terminal, and Dagster where Dagster started it (Pipes).

Pipes is spoken when ``DAGSTER_PIPES_CONTEXT`` is set, by the first process only. Without it nothing changes but that.
A terminal gets a line for each of some twenty steps; Dagster gets every step, with all numbers of the trainer's log:
{"kind": "step", "step": 3, "n_steps": 12, "said": "step 3/12, …", "metrics": {"loss": 5.12, …}}.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from transformers import TrainerCallback

from train.program import is_first_process

__all__ = ["Report", "StepReporter", "is_first_process", "reporting"]

STEP = "step"
"""The kind of the message that tells of a step."""


class Report:
    """Where lines, steps and results go."""

    def __init__(self, pipes: Any = None) -> None:
        self._pipes = pipes

    def line(self, text: str) -> None:
        """One line for a person."""
        if is_first_process():
            typer.echo(text)
        if self._pipes is not None:
            self._pipes.log.info(text)

    def step(self, step: int, n_steps: int, *, said: str, metrics: Mapping[str, Any], told: bool = True) -> None:
        """What one step came to: all that is finite of ``metrics`` to Dagster; ``said`` to the terminal if ``told``."""
        if told and is_first_process():
            typer.echo(said)
        if self._pipes is not None:
            finite = {name: value for name, value in metrics.items() if _is_finite(value)}
            message = {"kind": STEP, "step": step, "n_steps": n_steps, "said": said, "metrics": finite}
            self._pipes.report_custom_message(message)

    def materialized(self, metadata: Mapping[str, Any], *, data_version: str | None = None) -> None:
        """The result: the metadata of the asset that Dagster is materialising, and which version of it this is."""
        if self._pipes is not None and self._pipes.is_asset_step:
            self._pipes.report_asset_materialization(metadata=dict(metadata), data_version=data_version)


@contextmanager
def reporting() -> Iterator[Report]:
    """A report to the terminal, and to Dagster where it listens."""
    if "DAGSTER_PIPES_CONTEXT" not in os.environ or not is_first_process():
        yield Report()
        return
    from dagster_pipes import open_dagster_pipes

    with open_dagster_pipes() as pipes:
        yield Report(pipes)


LINES = 20


class StepReporter(TrainerCallback):
    """Reports every step of a trainer: ``step 3/12, epoch 0.50: loss 5.12``."""

    def __init__(self, report: Report, columns: Mapping[str, str]) -> None:
        """``columns`` maps names of the trainer's log to what a person reads."""
        self._report, self._columns = report, columns

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Called by the trainer."""
        if logs and "loss" in logs:
            step, n_steps = state.global_step, state.max_steps
            named = ", ".join(f"{name} {logs[key]:.4g}" for key, name in self._columns.items() if key in logs)
            said = f"step {step}/{n_steps}, epoch {logs['epoch']:.2f}: {named}"
            self._report.step(step, n_steps, said=said, metrics=logs, told=self._is_told(step, n_steps))

    @staticmethod
    def _is_told(step: int, n_steps: int) -> bool:
        return step in (1, n_steps) or step % max(1, n_steps // LINES) == 0


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
