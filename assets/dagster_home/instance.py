"""Dagster runs of commands: DAGSTER_HOME, runs left open by killed processes, jobs in this process.

Runs go to the instance that the UI shows; the terminal gets a line per asset.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
from rich.console import Console

from darkroom.assets.clusters.worker import is_abandoned, worker_tags
from darkroom.assets.dagster_home.history import open_instance
from darkroom.assets.graph.partitions import update_partitions
from darkroom.assets.terminal.run_lines import OnAsset, RunLines
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.storage_errors import storage_errors
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import SandboxError, UserError

_FORMER_SETTINGS = {
    "23105d8e797fafa896bfcd199e2e19dabd625bcd18e654d1f0b3e4dceb170cc6",
    "821c91598672f7e4cee1c239abc581c4c034abb6257fd510f9794fa686524f24",
    "a411b76cd3f484cf1a1590e4f66db61e607a360e0e6d8a96e4b09d38646cc222",
}
"""Digests of the files that Darkroom wrote before: without what notices and repeats lost runs, and without other
places than this machine."""
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class MaterializationFailed(UserError):
    """A job failed: the asset and its error message."""


def prepare_dagster_home(workspace: Workspace) -> Path:
    """Makes ``<home>/dagster`` with the bundled ``dagster.yaml``; ``DAGSTER_HOME`` points there unless it is set."""
    settings = _dagster_settings(workspace)
    with storage_errors(str(settings.parent)):
        settings.parent.mkdir(parents=True, exist_ok=True)
        if not settings.exists() or digest_bytes(settings.read_bytes()) in _FORMER_SETTINGS:
            settings.write_text((files("darkroom.assets") / "dagster.yaml").read_text())
    os.environ["DAGSTER_HOME"] = str(settings.parent)
    return settings.parent


def refresh_dagster(workspace: Workspace) -> None:
    """Closes abandoned runs and makes the sources' shards partitions, where there is a Dagster instance."""
    if _dagster_settings(workspace).exists():
        prepare_dagster_home(workspace)
        with open_instance() as instance:
            close_abandoned_runs(instance)
            update_partitions(workspace, instance)


def _dagster_settings(workspace: Workspace) -> Path:
    return Path(os.environ.get("DAGSTER_HOME") or workspace.local / "dagster").absolute() / "dagster.yaml"


def close_abandoned_runs(instance: dg.DagsterInstance) -> int:
    """Marks runs as failed whose process on this machine is gone, as run monitoring does where a daemon runs.

    Returns their number.
    """
    open_runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING]))
    abandoned = [run for run in open_runs if is_abandoned(run)]
    for run in abandoned:
        instance.report_run_failed(run, "its process was killed; run the job again, finished work is kept")
    return len(abandoned)


def materialize(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    console: Console,
    *,
    partition: str | None = None,
    settings: Mapping[str, Any] | None = None,
    only: Sequence[dg.AssetKey] | None = None,
    on_asset: OnAsset,
) -> None:
    """Runs ``job`` and prints a line per asset. ``settings``: config of the assets by op name; ``only``: a subset.

    Raises ``MaterializationFailed``, and ``KeyboardInterrupt`` where Ctrl-C ended the run.
    """
    title, run_id = f"{job.name} {partition}" if partition else job.name, str(uuid4())
    lines = RunLines(console, title, len(job.nodes) if only is None else len(only), on_asset)
    instance.add_event_listener(run_id, lines.record)
    with lines.live():
        run = job.execute_in_process(
            instance=instance,
            partition_key=partition,
            run_config={**_QUIET, "ops": {step: {"config": config} for step, config in (settings or {}).items()}},
            run_id=run_id,
            tags=worker_tags(run_id),
            asset_selection=only,
            raise_on_error=False,
        )
    if any(event.is_step_failure and _is_interrupt(event.step_failure_data) for event in run.all_events):
        raise KeyboardInterrupt
    if not run.success:
        raise MaterializationFailed("\n".join(_failures(run)))


def root_cause(failure: Any) -> str:
    """What to print of a failed step: the error that was raised for users, else the first one with its class.

    The whole trace is in the UI.
    """
    error, for_users = failure.error, {kind.__name__ for kind in _subclasses(UserError, SandboxError)}
    while error is not None and error.cause is not None and error.cls_name not in for_users:
        error = error.cause
    if error is None:
        return "failed"
    text: str = error.message.strip()
    return text.partition(": ")[2] if error.cls_name in for_users else text


def _is_interrupt(failure: Any) -> bool:
    """Dagster makes a failed step of Ctrl-C."""
    error, names = failure.error, {dg.DagsterExecutionInterruptedError.__name__, KeyboardInterrupt.__name__}
    while error is not None and error.cls_name not in names:
        error = error.cause
    return error is not None


def _subclasses(*kinds: type[Exception]) -> Iterator[type[Exception]]:
    for kind in kinds:
        yield from (kind, *_subclasses(*kind.__subclasses__()))


def _failures(run: dg.ExecuteInProcessResult) -> list[str]:
    steps = [
        f"{event.step_key}: {root_cause(event.step_failure_data)}" for event in run.all_events if event.is_step_failure
    ]
    checks = [
        f"check {check.check_name} of {check.asset_key.to_user_string()} failed: "
        + ", ".join(f"{name} {value.value}" for name, value in check.metadata.items())
        for check in run.get_asset_check_evaluations()
        if not check.passed and check.severity == dg.AssetCheckSeverity.ERROR
    ]
    return checks + steps or ["the run failed; see it in the UI"]
