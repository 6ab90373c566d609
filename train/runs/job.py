"""The run of every training program: skip it for known inputs, else train beside the output, then publish; reports.

Reports go to the terminal, about twenty steps a line each, and to Dagster (Pipes) where ``DAGSTER_PIPES_CONTEXT`` is
set: every step with all numbers of the trainer's log, from the first process.
{"kind": "step", "step": 3, "n_steps": 12, "said": "step 3/12, …", "metrics": {"loss": 5.12, …}}.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer
from transformers import PrinterCallback, TrainerCallback

from pipelines.records.digest import digest
from train.runs import gallery, history
from train.runs.checkpoints import HISTORY, CheckpointInputs, Staging, finished, folder_digest
from train.runs.command_line import is_first_process

STEP = "step"
"""The kind of a step's message."""


class RunReporter:
    """Sends lines, steps and results to the terminal and to Dagster."""

    def __init__(self, pipes: Any = None) -> None:
        self._pipes = pipes

    def line(self, text: str) -> None:
        """One line for a person."""
        if is_first_process():
            typer.echo(text)
        if self._pipes is not None:
            self._pipes.log.info(text)

    def step(self, step: int, n_steps: int, *, line: str, metrics: Mapping[str, Any], is_printed: bool = True) -> None:
        """One step: the finite ones of ``metrics`` to Dagster, ``line`` to the terminal if ``is_printed``."""
        if is_printed and is_first_process():
            typer.echo(line)
        if self._pipes is not None:
            finite = {name: value for name, value in metrics.items() if history.is_number(value)}
            message = {"kind": STEP, "step": step, "n_steps": n_steps, "said": line, "metrics": finite}
            self._pipes.report_custom_message(message)

    def materialized(self, metadata: Mapping[str, Any], *, data_version: str | None = None) -> None:
        """The result: metadata and data version of the asset that Dagster is materialising."""
        if self._pipes is not None and self._pipes.is_asset_step:
            self._pipes.report_asset_materialization(metadata=dict(metadata), data_version=data_version)


@contextmanager
def reporting() -> Iterator[RunReporter]:
    """A reporter to the terminal, and to Dagster where Dagster started this process."""
    if "DAGSTER_PIPES_CONTEXT" not in os.environ or not is_first_process():
        yield RunReporter()
        return
    from dagster_pipes import open_dagster_pipes

    with open_dagster_pipes() as pipes:
        yield RunReporter(pipes)


LINES = 20


class StepReporter(TrainerCallback):
    """Reports every step of a trainer: ``step 3/12, epoch 0.50: loss 5.12``."""

    def __init__(self, report: RunReporter, columns: Mapping[str, str]) -> None:
        """``columns`` maps names of the trainer's log to what a person reads."""
        self._report, self._columns = report, columns

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Called by the trainer."""
        if logs and "loss" in logs:
            step, n_steps = state.global_step, state.max_steps
            values = ", ".join(f"{name} {logs[key]:.4g}" for key, name in self._columns.items() if key in logs)
            line = f"step {step}/{n_steps}, epoch {logs['epoch']:.2f}: {values}"
            is_printed = step in (1, n_steps) or step % max(1, n_steps // LINES) == 0
            self._report.step(step, n_steps, line=line, metrics=logs, is_printed=is_printed)


def report_steps(trainer: Any, report: RunReporter, program: str) -> None:
    """Reports the steps of ``trainer``, in the place of what it prints itself."""
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(StepReporter(report, history.COLUMNS[program]["told"]))


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """The inputs of a training, its output, and the log column that its plot shows."""

    program: str
    dataset: Path
    model: Path
    output: Path
    arguments: dict[str, Any]
    column: str
    folders: tuple[Path, ...] = ()
    """The folders below ``dataset`` to read; none: all."""


Train = Callable[[Staging, RunReporter], list[dict[str, Any]]]
"""Trains, saves the checkpoint to ``staging.final`` and returns the steps of its log."""


def run_job(job: TrainingJob, train: Train, *, force: bool = False) -> dict[str, Any]:
    """Trains ``job.output`` unless it is complete, and returns its history."""
    datasets = [folder_digest(folder, "*.parquet") for folder in job.folders or (job.dataset,)]
    dataset = datasets[0] if len(datasets) == 1 else digest(datasets)
    inputs = CheckpointInputs(dataset, folder_digest(job.model), job.arguments)
    with reporting() as report:
        record = None if force else finished(job.output, inputs)
        if record is not None:
            report.line(f"{job.output} is complete for these inputs: nothing to do (--force trains again)")
        else:
            record = _make(job, inputs, train, report)
        if is_first_process():
            figure = (job.output / f"{job.column}.png").read_bytes()
            metadata = gallery.metadata(record, job.output, column=job.column, figure=figure)
            report.materialized(metadata, data_version=inputs.digest)
    return record


def _make(job: TrainingJob, inputs: CheckpointInputs, train: Train, report: RunReporter) -> dict[str, Any]:
    staging = Staging(job.output, inputs, writes=is_first_process())
    start, code = time.monotonic(), history.code_version()
    steps = train(staging, report)
    name = job.arguments.get("recipe") or job.arguments.get("method") or job.program
    record = {
        "program": job.program,
        "inputs": {
            "digest": inputs.digest,
            "dataset": {"folder": str(job.dataset), "digest": inputs.dataset},
            "model": {"folder": str(job.model), "digest": inputs.model},
            "arguments": dict(job.arguments),
        },
        "steps": steps,
        "n_steps": len(steps),
        "seconds": round(time.monotonic() - start, 2),
        "versions": history.package_versions(),
        "recipe": {"name": str(name), "digest": digest(dict(job.arguments))},
        "code": asdict(code),
    }
    if is_first_process():
        _write(job, record, staging.final)
        staging.publish()
        report.line(f"{job.output}: {len(steps)} steps in {record['seconds']:.0f} s")
    return record


def _write(job: TrainingJob, record: dict[str, Any], folder: Path) -> None:
    """The history, its plots, and the page with the sample rollouts if there are any."""
    (folder / HISTORY).write_text(json.dumps(record, indent=2) + "\n")
    title = job.program if job.output.name == job.program else f"{job.program}: {job.output.name}"
    steps = record["steps"]
    (folder / f"{job.column}.png").write_bytes(history.column_plot(steps, job.column, title=title))
    (folder / history.PANELS).write_bytes(history.panel_plot(steps, history.number_columns(steps), title=title))
    gallery.write_page(folder, title=title)
