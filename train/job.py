"""The course of every training program: same inputs, nothing to do; else train beside the output, then publish."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.digest import digest
from train import gallery, history, plots, provenance
from train.asset_page import metadata
from train.checkpoints import HISTORY, Inputs, Staging, finished, folder_digest
from train.program import is_first_process
from train.reporting import Report, reporting


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
            shown = metadata(made, job.output, column=job.column, figure=figure)
            report.materialized(shown, data_version=inputs.digest)
    return made


def _make(job: Job, inputs: Inputs, train: Train, report: Report) -> dict[str, Any]:
    staging = Staging(job.output, inputs, writes=is_first_process())
    start, code = time.monotonic(), provenance.code()
    steps = train(staging, report)
    made = history.History(
        program=job.program,
        inputs=_described(job, inputs),
        steps=steps,
        n_steps=len(steps),
        seconds=round(time.monotonic() - start, 2),
        versions=history.versions(),
        recipe=_recipe(job),
        code=asdict(code),
    )
    if is_first_process():
        _write(job, made, staging.final)
        staging.publish()
        report.line(f"{job.output}: {made.n_steps} steps in {made.seconds:.0f} s")
    return asdict(made)


def _write(job: Job, made: history.History, folder: Path) -> None:
    """The history, its plots, and the page with the sample rollouts if there are any."""
    made.write(folder / HISTORY)
    title = job.program if job.output.name == job.program else f"{job.program}: {job.output.name}"
    (folder / job.figure).write_bytes(plots.plot(made.steps, job.column, title=title))
    (folder / history.PANELS).write_bytes(plots.panels(made.steps, plots.numbers(made.steps), title=title))
    gallery.write_page(folder, title=title)


def _recipe(job: Job) -> dict[str, str]:
    """What the recipe is called, where the program has several, and the digest of all that it sets."""
    named = (job.arguments.get(name) for name in ("recipe", "method"))
    return {"name": str(next(filter(None, named), job.program)), "digest": digest(dict(job.arguments))}


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
