"""The course of every training program: same inputs, nothing to do; else train beside the output, then publish."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.digest import digest
from train import history
from train.checkpoints import HISTORY, Inputs, Staging, finished, folder_digest
from train.reporting import Report, is_first_process, metadata, reporting


@dataclass(frozen=True, slots=True)
class Job:
    """What to train from what, and the column of its log that tells how it went."""

    program: str
    dataset: Path
    model: Path
    output: Path
    arguments: dict[str, Any]
    column: str
    folders: tuple[Path, ...] = ()
    """The folders of ``dataset`` that are read, when they are not all of it."""

    @property
    def figure(self) -> str:
        """Name of the plot in the output folder."""
        return f"{self.column}.png"


Train = Callable[[Staging, Report], list[dict[str, Any]]]
"""Trains, saves the checkpoint to ``staging.final`` and returns the steps of its log."""


def run_job(job: Job, train: Train, *, force: bool = False) -> dict[str, Any]:
    """Brings ``job.output`` about and returns its history."""
    inputs = Inputs(_dataset_digest(job), folder_digest(job.model), job.arguments)
    with reporting() as report:
        made = None if force else finished(job.output, inputs)
        if made is not None:
            report.line(f"{job.output} is complete for these inputs: nothing to do (--force trains again)")
        else:
            made = _make(job, inputs, train, report)
        if is_first_process():
            figure = (job.output / job.figure).read_bytes()
            report.materialized(metadata(made, job.output, column=job.column, figure=figure))
    return made


def _make(job: Job, inputs: Inputs, train: Train, report: Report) -> dict[str, Any]:
    staging = Staging(job.output, inputs, writes=is_first_process())
    start = time.monotonic()
    steps = train(staging, report)
    made = history.History(
        program=job.program,
        inputs=_described(job, inputs),
        steps=steps,
        n_steps=len(steps),
        seconds=round(time.monotonic() - start, 2),
        versions=history.versions(),
    )
    if is_first_process():
        made.write(staging.final / HISTORY)
        figure = history.plot(steps, job.column, title=f"{job.program}: {job.output.name}")
        (staging.final / job.figure).write_bytes(figure)
        staging.publish()
        report.line(f"{job.output}: {made.n_steps} steps in {made.seconds:.0f} s")
    return asdict(made)


def _dataset_digest(job: Job) -> str:
    parts = [folder_digest(folder, "*.parquet") for folder in job.folders or (job.dataset,)]
    return parts[0] if len(parts) == 1 else digest(parts)


def _described(job: Job, inputs: Inputs) -> dict[str, Any]:
    return {
        "digest": inputs.digest,
        "dataset": {"folder": str(job.dataset), "digest": inputs.dataset},
        "model": {"folder": str(job.model), "digest": inputs.model},
        "arguments": dict(job.arguments),
    }
