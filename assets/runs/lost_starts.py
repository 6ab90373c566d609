"""Runs that were lost before they began: Dagster's monitoring only waits for them until its time limit.

That limit is a day for a team, since a job may wait in a cluster's own queue. The sensor asks the launcher instead, and
gives up a start on the code server's machine, where nothing waits, after ten minutes.
"""

from __future__ import annotations

import time

import dagster as dg
from dagster._core.launcher import WorkerStatus

from assets.runs.places import HERE, TAG, PlacedRunLauncher

_SECONDS = 30
_START_SECONDS = 600.0
"""A loaded machine takes minutes to import everything."""
_LAUNCH_SECONDS = 60.0
"""From the queue until the cluster knows the run, at most: its client is imported meanwhile."""


@dg.sensor(
    name="lost_starts",
    minimum_interval_seconds=_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Fails runs whose worker on a cluster ended before the run began, so that they are repeated.",
)
def lost_starts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """A cluster that does not answer fails the tick; the next one asks again."""
    n_failed = fail_lost_starts(context.instance)
    return dg.SkipReason(f"{n_failed} runs were lost before they began")


def fail_lost_starts(instance: dg.DagsterInstance) -> int:
    """Returns the number of runs that it failed."""
    if not isinstance(instance.run_launcher, PlacedRunLauncher):
        return 0
    n_failed = 0
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING])):
        reason = _reason(instance, instance.run_launcher, run)
        now = instance.get_run_by_id(run.run_id)
        # one that began meanwhile is the monitoring's
        if reason and now is not None and now.status == run.status:
            instance.report_run_failed(run, reason)
            n_failed += 1
    return n_failed


def _reason(instance: dg.DagsterInstance, launcher: PlacedRunLauncher, run: dg.DagsterRun) -> str:
    """Why it will not begin; empty while it may."""
    launched_at = instance.get_run_stats(run.run_id).launch_time
    if run.tags.get(TAG, HERE) == HERE:
        is_late = launched_at is not None and time.time() - launched_at > _START_SECONDS
        return f"its process did not begin within {_START_SECONDS:.0f} s" if is_late else ""
    if launched_at is not None and time.time() - launched_at < _LAUNCH_SECONDS:
        return ""
    health = launcher.check_run_worker_health(run)
    if health.status != WorkerStatus.FAILED:
        return ""
    return f"its worker ended before the run began: {health.msg}"
