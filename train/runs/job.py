"""The run of every training program: skip it for known inputs, else train beside the output, then publish. Nothing that
trains is imported here: a run with nothing to do ends within a second or two."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.user_files import one_line
from darkroom.sandbox.errors import raised_as
from darkroom.train.runs import TrainError, gallery, history
from darkroom.train.runs.checkpoints import HISTORY, CheckpointInputs, Staging, finished, folder_digest
from darkroom.train.runs.command_line import is_first_process
from darkroom.train.runs.held_out import evaluation_record
from darkroom.train.runs.reporting import RunReporter, reporting

PACKAGES = ("torch", "transformers", "trl", "datasets", "peft", "accelerate")


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


_OF_OPTIONS = (AttributeError, ImportError, TypeError, ValueError)
"""Errors of a library that cannot do what an argument of its trainer says."""
Train = Callable[[Staging, RunReporter], list[dict[str, Any]]]
"""Trains, saves the checkpoint to ``staging.final`` and returns the steps of its log."""


def run_job(job: TrainingJob, train: Train, *, force: bool = False, restart: bool = False) -> dict[str, Any]:
    """Train ``job.output`` unless it is complete, and return its history; ``restart``: not from a restart point."""
    datasets = [folder_digest(folder, "*.parquet") for folder in job.folders or (job.dataset,)]
    dataset = datasets[0] if len(datasets) == 1 else digest(datasets)
    inputs = CheckpointInputs(dataset, folder_digest(job.model), job.arguments)
    with reporting() as report:
        record = None if force else finished(job.output, inputs)
        if record is not None:
            report.line(f"{job.output} is complete for these inputs: nothing to do (--force trains again)")
        else:
            record = _make(job, inputs, train, report, restart=restart)
        if is_first_process():
            figure = (job.output / f"{job.column}.png").read_bytes()
            metadata = gallery.metadata(record, job.output, column=job.column, figure=figure)
            report.materialized(metadata, data_version=inputs.digest)
    return record


def with_rows(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the folder of the rows to evaluate on by their digest, as datasets are inputs."""
    folder = arguments.get("eval_dataset")
    if not folder:
        return dict(arguments)
    if not Path(folder).is_dir():
        raise TrainError(f"no dataset folder {folder}: --eval-dataset names a folder with rows to evaluate on")
    return {**arguments, "eval_dataset": folder_digest(Path(folder), "*.parquet")}


def _make(
    job: TrainingJob, inputs: CheckpointInputs, train: Train, report: RunReporter, *, restart: bool
) -> dict[str, Any]:
    staging = Staging(job.output, inputs, writes=is_first_process(), restart=restart)
    start, code = time.monotonic(), history.code_version()
    options = ", ".join(f"trainer.{name}={value}" for name, value in job.arguments.get("trainer", {}).items())
    failed = f"{options}: training failed with that (change it, or leave it out)"
    with raised_as(lambda error: TrainError(f"{failed}: {one_line(error)}"), *(_OF_OPTIONS if options else ())):
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
        "versions": {name: version(name) for name in PACKAGES},
        "recipe": {"name": str(name), "digest": digest(dict(job.arguments))},
        "code": asdict(code),
    }
    if staging.changes:
        record["resumed_with"] = staging.changes
    if job.arguments.get("eval_every"):
        record["evaluation"] = evaluation_record(steps, job.arguments, job.program)
    if is_first_process():
        _write(job, record, staging.final)
        staging.publish()
        report.line(f"{job.output}: {len(steps)} steps in {record['seconds']:.0f} s")
    return record


def _write(job: TrainingJob, record: dict[str, Any], folder: Path) -> None:
    (folder / HISTORY).write_text(json.dumps(record, indent=2) + "\n")
    title = job.program if job.output.name == job.program else f"{job.program}: {job.output.name}"
    steps = record["steps"]
    (folder / f"{job.column}.png").write_bytes(history.column_plot(steps, job.column, title=title))
    (folder / history.PANELS).write_bytes(history.panel_plot(steps, history.number_columns(steps), title=title))
    gallery.write_page(folder, title=title)
