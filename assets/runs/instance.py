"""Dagster runs of commands: DAGSTER_HOME, runs left open by killed processes, jobs in this process.

Runs go to the instance that the UI shows; the terminal gets a line per asset.
"""

import os
import socket
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import dagster as dg
from rich.console import Console

from assets.graph.stage_assets import shown_by
from pipelines.storage.workspace import Workspace
from sandbox.errors import UserError

PID_TAG, HOST_TAG = "darkroom/pid", "darkroom/host"
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_N_FINAL_METRICS = 3
_COUNTS = (("rows_in", "in"), ("rows_out", "out"), ("rejected", "rejected"), ("quarantined", "quarantined"))


class MaterializationFailed(UserError):
    """A job failed: the asset and its error message."""


def prepare_dagster_home(workspace: Workspace) -> Path:
    """Makes ``<home>/dagster`` with the bundled ``dagster.yaml``; ``DAGSTER_HOME`` points there unless it is set."""
    home = Path(os.environ.get("DAGSTER_HOME") or workspace.home / "dagster").absolute()
    home.mkdir(parents=True, exist_ok=True)
    settings = home / "dagster.yaml"
    if not settings.exists():
        settings.write_text((files("assets") / "dagster.yaml").read_text())
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def process_tags() -> dict[str, str]:
    """Tags by which a later process detects that this one is gone."""
    return {PID_TAG: str(os.getpid()), HOST_TAG: socket.gethostname()}


def close_abandoned_runs(instance: dg.DagsterInstance) -> int:
    """Marks runs as failed whose process on this machine is gone (Dagster does not detect it). Returns their number."""
    open_runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING]))
    abandoned = [run for run in open_runs if _is_abandoned(run.tags)]
    for run in abandoned:
        instance.report_run_failed(run, "its process was killed; run the job again, finished work is kept")
    return len(abandoned)


def _is_abandoned(tags: Mapping[str, str]) -> bool:
    if tags.get(HOST_TAG) != socket.gethostname() or PID_TAG not in tags:
        return False
    try:
        os.kill(int(tags[PID_TAG]), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)  # else it is another user's
    return False


def materialize(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    console: Console,
    *,
    partition: str | None = None,
    settings: Mapping[str, Any] | None = None,
    only: Sequence[dg.AssetKey] | None = None,
) -> None:
    """Runs ``job`` and prints a line per asset. ``settings``: config of the assets by op name; ``only``: a subset.

    Raises ``MaterializationFailed``.
    """
    title = f"{job.name} {partition}" if partition else job.name
    started = time.monotonic()
    with console.status(f"{title} …") as status, shown_by(lambda line: status.update(f"{title} …  {line}")):
        run = job.execute_in_process(
            instance=instance,
            partition_key=partition,
            run_config={**_QUIET, "ops": {step: {"config": config} for step, config in (settings or {}).items()}},
            tags=process_tags(),
            asset_selection=only,
            raise_on_error=False,
        )
    console.print(f"[bold]{title}[/bold]  {time.monotonic() - started:.1f} s")
    durations = {
        event.step_key: event.step_success_data.duration_ms / 1000 for event in run.all_events if event.is_step_success
    }
    for event in run.get_asset_materialization_events():
        materialization = event.step_materialization_data.materialization
        console.print(_line(materialization, durations.get(event.step_key)), highlight=False, soft_wrap=True)
    if not run.success:
        raise MaterializationFailed("\n".join(_failures(run)))


def _line(materialization: dg.AssetMaterialization, seconds: float | None) -> str:
    values = {name: value.value for name, value in materialization.metadata.items()}
    counts = [f"{values[name]:>6,} {label}" for name, label in _COUNTS if name in values]
    final_metrics = [
        f"  {name.replace('_', ' ')} {value:.3g}"
        for name, value in values.items()
        if name.startswith("final_") and value is not None
    ][:_N_FINAL_METRICS]
    duration = f"  {seconds:.1f} s" if seconds is not None else ""
    mark = "  [dim](unchanged)[/dim]" if values.get("reused") else ""
    asset = materialization.asset_key.to_user_string()
    return f"  {asset:<34}{''.join(counts + final_metrics)}{duration}{mark}"


def _root_cause(failure: Any) -> str:
    """The message of the first error; the whole trace is in the UI."""
    error = failure.error
    while error is not None and error.cause is not None:
        error = error.cause
    return error.message.strip() if error is not None else "failed"


def _failures(run: dg.ExecuteInProcessResult) -> list[str]:
    steps = [
        f"{event.step_key}: {_root_cause(event.step_failure_data)}" for event in run.all_events if event.is_step_failure
    ]
    checks = [
        f"check {check.check_name} of {check.asset_key.to_user_string()} failed: "
        + ", ".join(f"{name} {value.value}" for name, value in check.metadata.items())
        for check in run.get_asset_check_evaluations()
        if not check.passed
    ]
    return checks + steps or ["the run failed; see it in the UI"]
