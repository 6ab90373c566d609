"""Tells whoever started the program how it goes: a terminal, and Dagster where Dagster started it (Pipes).

Pipes is spoken when ``DAGSTER_PIPES_CONTEXT`` is set, by the first process only. Without it nothing changes but that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from transformers import TrainerCallback

from train import history


def is_first_process() -> bool:
    """Whether this is the process that writes and reports; ``accelerate launch`` and torchrun set ``RANK``."""
    return int(os.environ.get("RANK", "0")) == 0


class Report:
    """Where lines and results go."""

    def __init__(self, pipes: Any = None) -> None:
        self._pipes = pipes

    def line(self, text: str) -> None:
        """One line for a person."""
        if is_first_process():
            typer.echo(text)
        if self._pipes is not None:
            self._pipes.log.info(text)

    def materialized(self, metadata: Mapping[str, Any]) -> None:
        """The result, as the metadata of the asset that Dagster is materialising."""
        if self._pipes is not None and self._pipes.is_asset_step:
            self._pipes.report_asset_materialization(metadata=dict(metadata))


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
    """A line for each of some twenty steps, however many there are: ``step 3/12, epoch 0.50: loss 5.12``."""

    def __init__(self, report: Report, columns: Mapping[str, str]) -> None:
        """``columns`` maps names of the trainer's log to what a person reads."""
        self._report, self._columns = report, columns

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Called by the trainer."""
        if logs and "loss" in logs and self._is_told(state.global_step, state.max_steps):
            said = ", ".join(f"{name} {logs[key]:.4g}" for key, name in self._columns.items() if key in logs)
            self._report.line(f"step {state.global_step}/{state.max_steps}, epoch {logs['epoch']:.2f}: {said}")

    @staticmethod
    def _is_told(step: int, n_steps: int) -> bool:
        return step in (1, n_steps) or step % max(1, n_steps // LINES) == 0


def metadata(made: Mapping[str, Any], output: Path, *, column: str, figure: bytes) -> dict[str, Any]:
    """What the asset's page shows of a ``training.json``: the column's course, its table and plot, time and place."""
    steps = made["steps"]
    values = [step[column] for step in steps if column in step]
    return {
        f"final_{column}": _value(values[-1] if values else None, "float"),
        column: _value(f"`{history.sparkline(values)}`\n\n{history.step_table(steps)}", "md"),
        "plot": _value(history.embedded(figure, column), "md"),
        "steps": _value(made["n_steps"], "int"),
        "seconds": _value(made["seconds"], "float"),
        "checkpoint": _value(str(output.resolve()), "path"),
    }


def _value(raw: Any, kind: str) -> dict[str, Any]:
    return {"raw_value": raw, "type": kind if raw is not None else "null"}
