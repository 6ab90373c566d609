"""What Dagster may start by itself. All of it is off until it is switched on (Automation, in the UI).

A shard that is added flows through the stages that take it; datasets are shipped every night. Both cost what a launch
by hand costs. Shards that were there before are a backfill's.
"""

from datetime import timedelta

import dagster as dg

_SAMPLES = dg.AssetSelection.assets("samples")
WHEN_ADDED = dg.AutomationCondition.on_missing().ignore(_SAMPLES)
"""Once for each added shard, when the stages above have it or are requested with it. Samples are read by the first."""

SHIPS = dg.FreshnessPolicy.time_window(fail_window=timedelta(days=30), warn_window=timedelta(days=7))
"""Of the datasets: their pages say how old they are. Nothing depends on it."""


def shard_sensor(use: str, groups: list[str]) -> dg.AutomationConditionSensorDefinition:
    """The switch of what takes the shards of one use."""
    return dg.AutomationConditionSensorDefinition(
        f"new_{use}_shards",
        target=dg.AssetSelection.groups(*groups),
        minimum_interval_seconds=60,
        description=f"Runs {', '.join(groups)} on every shard that is added to {use}_shards while it is on.",
    )


def nightly(job: str, minute: int) -> dg.ScheduleDefinition:
    """The switch of a dataset that is shipped every night."""
    return dg.ScheduleDefinition(
        name=f"nightly_{job}",
        job_name=job,
        cron_schedule=f"{minute} 3 * * *",
        description="Ships the rows that are there after 3 o'clock UTC.",
    )
