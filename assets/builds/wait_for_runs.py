"""Wait for a job's runs on a cluster: a command prints the lines of each shard as it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import dagster as dg
from rich.console import Console
from rich.status import Status

from darkroom.assets.builds.failures import MaterializationFailed, failures_on_cluster
from darkroom.assets.clusters.queued_runs import QueuedRuns
from darkroom.assets.clusters.worker import host_of
from darkroom.assets.dagster_home.daemon import daemon
from darkroom.assets.dagster_home.history import DATABASE_ERRORS, InstanceUnavailable
from darkroom.assets.terminal.run_lines import materialization_line

_SECONDS, _AWAY_SECONDS = 2.0, 600.0
_T = TypeVar("_T")


def materialize_on_cluster(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    console: Console,
    runs_on: str,
    partitions: Sequence[str],
    *,
    only: Sequence[dg.AssetKey] | None = None,
    run_config: Mapping[str, Any] | None = None,
) -> None:
    """Queue a run for each of the ``partitions`` and wait for all; Ctrl-C cancels them, a killed command leaves them.

    A shard that failed stops no other. A job without partitions has one, "". Raises ``MaterializationFailed`` with the
    message of each.
    """
    runs, failures = QueuedRuns(instance, job, runs_on), list[str]()
    with daemon(instance) as watch, console.status(f"{job.name} … queueing {len(partitions):,} runs") as status:
        try:
            # the first shards are worked on while the others are queued
            _patiently(status, lambda: runs.submit(partitions, only, run_config))
            while runs.n_open():
                watch.ensure()
                _patiently(status, lambda: _note_ended(console, instance, runs, failures))
                n_ended, n_running = len(partitions) - runs.n_open(), _patiently(status, runs.n_running)
                status.update(
                    f"{job.name} on {runs_on} … {n_ended:,} of {len(partitions):,} ended, {n_running:,} running"
                )
                time.sleep(_SECONDS)
        except KeyboardInterrupt:
            runs.cancel()
            raise
    if failures:
        raise MaterializationFailed("\n".join(failures))


def _patiently(status: Status, ask: Callable[[], _T]) -> _T:
    """Retry while Dagster's database is unavailable. Raises ``InstanceUnavailable``."""
    deadline = time.monotonic() + _AWAY_SECONDS
    while True:
        try:
            return ask()
        except DATABASE_ERRORS as error:
            if time.monotonic() > deadline:
                raise InstanceUnavailable(
                    f"Dagster's history does not answer since {_AWAY_SECONDS:.0f} s: start its server, then run this "
                    "again; runs on the cluster go on"
                ) from error
        status.update("waiting for Dagster's history, which does not answer …")
        time.sleep(_SECONDS)


def _note_ended(console: Console, instance: dg.DagsterInstance, runs: QueuedRuns, failures: list[str]) -> None:
    """Print the shards that have ended since the last call, and add the reasons of those that failed."""
    for partition, run in runs.ended():
        failed = [] if run.is_success else failures_on_cluster(instance, run)
        reasons = [f"{partition}: {reason}" if partition else reason for reason in failed]
        _print(console, instance, partition, run)
        failures += reasons


def _print(console: Console, instance: dg.DagsterInstance, partition: str, run: dg.DagsterRun) -> None:
    stats = instance.get_run_stats(run.run_id)
    seconds = f"{stats.end_time - stats.start_time:.1f} s" if stats.start_time and stats.end_time else "not started"
    host, repeated = host_of(run), int(run.tags.get("dagster/retry_number", 0))
    where = f" on {host}" if host else ""
    again = f", repeated {repeated} time{'s' if repeated > 1 else ''}" if repeated else ""
    events = instance.all_logs(
        run.run_id, of_type={dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.STEP_SUCCESS}
    )
    console.print(f"[bold]{f'{run.job_name} {partition}'.strip()}[/bold]  {seconds}{where}{again}")
    logged = [event.dagster_event for event in events if event.dagster_event is not None]
    durations = {
        event.step_key: event.step_success_data.duration_ms / 1000 for event in logged if event.is_step_success
    }
    for event in logged:
        if event.is_step_materialization:
            line = materialization_line(event.step_materialization_data.materialization, durations.get(event.step_key))
            console.print(line, highlight=False, soft_wrap=True)
