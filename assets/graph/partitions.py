"""Partitions: the shards of all sources, and of these what the SFT families, the families of releases and RL take.

    shards            demo-0000  demo-0001  demo_rl-0000      the asset ``samples``
    sft_shards        demo-0000  demo-0001                    drafts to rejects of every family
    released_shards                                           the same of the families of releases
    rl_shards                               demo_rl-0000      the RL stages

They are dynamic: a source that is added while the UI runs becomes partitions at the sensor's next tick, or at the next
command. A shard is where its source says so (``used_for``), and where tables were made of it: `darkroom rl photos`
needs no setting. It leaves the sets with its source, or with the setting while there are no tables; runs stay. Bundled
sources that were not read are absent beside a source of the user's own.

Automation is off until it is switched on (Automation, in the UI): an added shard flows through the stages that take it,
datasets are shipped every night. Both cost what a launch by hand costs. Shards that were there before are a backfill's.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import chain
from typing import get_args

import dagster as dg

from darkroom.assets.clusters.placement import PARTITION_TAG, UNFINISHED
from darkroom.assets.graph.resources import WorkspaceResource
from darkroom.pipelines.generation.released import RELEASED
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.rl.candidates import Candidates
from darkroom.pipelines.sources.catalog import EMBEDDED, EMBEDDED_RL, Catalog, source_of
from darkroom.pipelines.sources.source_config import Use
from darkroom.pipelines.storage.workspace import Workspace

SHARDS = dg.DynamicPartitionsDefinition(name="shards")
SHARDS_OF: Mapping[Use, dg.DynamicPartitionsDefinition] = {
    use: dg.DynamicPartitionsDefinition(name=f"{use}_shards") for use in get_args(Use)
}
BUNDLED = {EMBEDDED, EMBEDDED_RL}
WHEN_ADDED = dg.AutomationCondition.on_missing().ignore(dg.AssetSelection.assets("samples"))
"""Once for each added shard, when the stages above have it or are requested with it. Samples are read by the first."""

SHIPS = dg.FreshnessPolicy.time_window(fail_window=timedelta(days=30), warn_window=timedelta(days=7))
"""The age of datasets that their pages warn of; nothing depends on it."""
Change = dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest
_SECONDS = 30


def update_partitions(
    workspace: Workspace, instance: dg.DagsterInstance, used: Mapping[Use, Sequence[str]] | None = None
) -> None:
    """Make Dagster's partitions those of the sources. ``used``: shards about to be used for something else."""
    for change in partition_changes(workspace, instance, used or {}):
        name, keys = change.partitions_def_name, list(change.partition_keys)
        if isinstance(change, dg.AddDynamicPartitionsRequest):
            instance.add_dynamic_partitions(name, keys)
            continue
        for key in keys:
            instance.delete_dynamic_partition(name, key)


def partition_changes(
    workspace: Workspace, instance: dg.DagsterInstance, used: Mapping[Use, Sequence[str]]
) -> list[Change]:
    """The partitions that Dagster lacks, and those that have no source. Raises ``SourceError``."""
    changes: list[Change] = []
    for partitions, keys in _wanted(workspace, used).items():
        present = set(instance.get_dynamic_partitions(str(partitions.name)))
        if added := [key for key in keys if key not in present]:
            changes.append(partitions.build_add_request(added))
        if gone := present - set(keys):
            # runs work on these or are about to need them; a command goes on with the next shard of its source
            runs = instance.get_runs(dg.RunsFilter(statuses=UNFINISHED))
            needed = {source_of(run.tags[PARTITION_TAG]) for run in runs if PARTITION_TAG in run.tags}
            if gone := {key for key in gone if source_of(key) not in needed}:
                changes.append(partitions.build_delete_request(sorted(gone)))
    return changes


def _wanted(workspace: Workspace, used: Mapping[Use, Sequence[str]]) -> dict[dg.DynamicPartitionsDefinition, list[str]]:
    catalog = Catalog(workspace.sources)
    uses, tables = catalog.uses(), _with_tables(workspace)
    sources = {key: source for key, (source, _) in catalog.partitions().items()}
    if not BUNDLED.issuperset(sources.values()):  # bundled ones beside others, as far as they are in use
        keys = [*(key.partition for key in workspace.tables.keys(SAMPLES)), *chain.from_iterable(used.values())]
        unused = BUNDLED - set(map(source_of, keys))
        sources = {key: source for key, source in sources.items() if source not in unused}
    keys_of = {SHARDS: list(sources)}
    for use, partitions in SHARDS_OF.items():
        others = {*tables[use], *used.get(use, ())}
        keys_of[partitions] = [key for key, source in sources.items() if use in uses[source] or key in others]
    return keys_of


def _with_tables(workspace: Workspace) -> dict[Use, set[str]]:
    """The partitions of which the first stage of each use has a table."""
    tables, released = workspace.tables, {recipe.family for recipe in RELEASED}
    partitions: dict[Use, set[str]] = {use: set() for use in SHARDS_OF}
    for family in tables.families():
        drafted = {key.partition for key in tables.keys((family, "drafts"))}
        partitions["released" if family in released else "sft"] |= drafted
    partitions["rl"] |= {key.partition for key in tables.keys((Candidates.asset,))}
    return partitions


@dg.sensor(
    name="source_partitions",
    minimum_interval_seconds=_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Makes the shards of added sources partitions, and removes those of sources that are gone.",
)
def source_partitions(
    context: dg.SensorEvaluationContext, workspace: WorkspaceResource
) -> dg.SensorResult | dg.SkipReason:
    """A source's file that is wrong fails the tick, which names the field; the next one tries again."""
    with workspace.open() as opened:
        changes = partition_changes(opened, context.instance, {})
    if not changes:
        return dg.SkipReason("the partitions are the shards of the sources")
    return dg.SensorResult(dynamic_partitions_requests=changes)


def shard_sensor(use: str, groups: list[str]) -> dg.AutomationConditionSensorDefinition:
    """The switch of what takes the shards of one use."""
    target = dg.AssetSelection.groups(*groups)
    words = f"Runs {', '.join(groups)} on every shard that is added to {use}_shards while it is on."
    return dg.AutomationConditionSensorDefinition(
        f"new_{use}_shards", target=target, minimum_interval_seconds=60, description=words
    )


def nightly(job: str, minute: int) -> dg.ScheduleDefinition:
    """The switch of a dataset that is shipped every night."""
    words, when = "Ships the rows that are there after 3 o'clock UTC.", f"{minute} 3 * * *"
    return dg.ScheduleDefinition(name=f"nightly_{job}", job_name=job, cron_schedule=when, description=words)
