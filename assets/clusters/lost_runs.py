"""Fail runs whose worker died before they started, and decide on failures that Dagster recorded only by half.

Its monitoring waits for a start until its time limit, which is a day for a team, since a job may wait in a cluster's
own queue. The sensor asks the launcher instead, and gives up a start on the code server's machine, where nothing waits,
after ten minutes. Where Dagster's database ends between two of Dagster's steps, a repeat is made and never queued, or
it is never decided whether a failed run is repeated.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import dagster as dg

from darkroom.assets.clusters.placement import LOCAL, RUNS_ON_TAG, WILL_RETRY_TAG
from darkroom.assets.clusters.run_launcher import PlacedRunLauncher
from darkroom.assets.clusters.worker import is_lost

_SECONDS = 30
_START_SECONDS = 600.0
"""A loaded machine takes minutes to import everything."""
_LAUNCH_SECONDS = 60.0
"""From the queue until the cluster knows the run, at most: its client is imported meanwhile."""
_DECISION_SECONDS = 60.0
"""Dagster decides a moment after a run has failed."""
_DAY = timedelta(days=1)
_OVERLAP = timedelta(minutes=10)
"""A first tick looks back a day, the next ones a little beyond the last: clocks of machines differ."""


@dg.sensor(
    name="lost_starts",
    minimum_interval_seconds=_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Fails runs whose worker on a cluster ended before the run began, so that they are repeated, and runs "
    "whose failure was only half recorded.",
)
def lost_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """A cluster that does not answer fails the tick; the next one asks again."""
    now = datetime.now(UTC)
    since = datetime.fromisoformat(context.cursor) if context.cursor else now - _DAY
    n_again = retry_undecided_failures(context.instance, since)
    n_failed = fail_lost_runs(context.instance)
    context.update_cursor((now - _OVERLAP).isoformat())
    return dg.SkipReason(f"{n_failed} runs were lost before they began, {n_again} failures were only half recorded")


def fail_lost_runs(instance: dg.DagsterInstance) -> int:
    """Fail runs whose worker ended before they began. Returns their number."""
    launcher = instance.run_launcher
    if isinstance(launcher, dg.DefaultRunLauncher) or not launcher.supports_check_run_worker_health:
        return 0
    n_failed = 0
    before = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING]
    for record in instance.get_run_records(dg.RunsFilter(statuses=before)):
        run = record.dagster_run
        reason = _reason(instance, record)
        now = instance.get_run_by_id(run.run_id)
        # one that began meanwhile is the monitoring's
        if reason and now is not None and now.status == run.status:
            instance.report_run_failed(run, reason)
            n_failed += 1
    return n_failed


def retry_undecided_failures(instance: dg.DagsterInstance, since: datetime) -> int:
    """Record failures again if Dagster has not decided whether to repeat the run. Returns their number."""
    if not instance.run_retries_enabled:
        return 0
    records = instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since))
    settled = [record.dagster_run for record in records if _seconds_since(record.update_timestamp) > _DECISION_SECONDS]
    undecided = [run for run in settled if WILL_RETRY_TAG not in run.tags]
    for run in undecided:
        instance.report_run_failed(run, "its failure was only half recorded: Dagster's database was away")
    return len(undecided)


def _reason(instance: dg.DagsterInstance, record: dg.RunRecord) -> str:
    """The reason why a run will not begin; empty while it may."""
    launcher, run = instance.run_launcher, record.dagster_run
    if run.status == dg.DagsterRunStatus.NOT_STARTED:
        is_late = _seconds_since(record.create_timestamp) > _START_SECONDS
        return f"it was not queued within {_START_SECONDS:.0f} s" if is_late else ""
    launched_at = instance.get_run_stats(run.run_id).launch_time
    if isinstance(launcher, PlacedRunLauncher) and run.tags.get(RUNS_ON_TAG, LOCAL) == LOCAL:
        is_late = launched_at is not None and time.time() - launched_at > _START_SECONDS
        return f"its process did not begin within {_START_SECONDS:.0f} s" if is_late else ""
    if launched_at is not None and time.time() - launched_at < _LAUNCH_SECONDS:
        return ""
    health = launcher.check_run_worker_health(run)
    return f"its worker ended before the run began: {health.msg}" if is_lost(health) else ""


def _seconds_since(moment: datetime) -> float:
    """The database's times are of UTC, without saying so."""
    return (datetime.now(UTC) - moment.replace(tzinfo=UTC)).total_seconds()
