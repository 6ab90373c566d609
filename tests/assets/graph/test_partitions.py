"""Partitions follow the sources: what each use takes, what comes and goes, and runs that were made before."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value

from darkroom.assets.definitions import SAMPLES
from darkroom.assets.graph.families import stage_key
from darkroom.assets.graph.partitions import SHARDS, SHARDS_OF, source_partitions, update_partitions
from darkroom.assets.graph.resources import WorkspaceResource
from darkroom.pipelines.sources.catalog import Catalog, public_source
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import PARTITION, materialize_shard


def keys_of(instance: dg.DagsterInstance) -> dict[str, list[str]]:
    sets = {"all": SHARDS, **SHARDS_OF}
    return {name: list(instance.get_dynamic_partitions(str(one.name))) for name, one in sets.items()}


def tick(instance: dg.DagsterInstance) -> dg.SensorResult | dg.SkipReason:
    """One tick of the sensor; what it asks for is done, as the daemon does it."""
    context = dg.build_sensor_context(instance=instance, resources={"workspace": WorkspaceResource()})
    result = source_partitions(context)
    assert isinstance(result, dg.SensorResult | dg.SkipReason)
    for change in getattr(result, "dynamic_partitions_requests", None) or ():
        if isinstance(change, dg.AddDynamicPartitionsRequest):
            instance.add_dynamic_partitions(change.partitions_def_name, list(change.partition_keys))
        else:
            for key in change.partition_keys:
                instance.delete_dynamic_partition(change.partitions_def_name, key)
    return result


def add_samples(workspace: Workspace, partition: str) -> None:
    """As if the shard had been read."""
    table = workspace.tables.root / "samples" / f"{partition}.parquet"
    table.parent.mkdir(parents=True, exist_ok=True)
    table.touch()


def test_each_use_has_the_shards_that_it_can_take(instance: dg.DagsterInstance, workspace: Workspace) -> None:
    assert isinstance(tick(instance), dg.SensorResult)
    assert keys_of(instance) == {
        "all": ["demo-0000", "demo-0001", "demo_rl-0000"],
        "sft": ["demo-0000", "demo-0001"],
        "released": [],
        "rl": ["demo_rl-0000"],
    }
    assert isinstance(tick(instance), dg.SkipReason)


def test_bundled_sources_that_were_not_read_are_absent_beside_one_of_the_users_own(
    instance: dg.DagsterInstance, workspace: Workspace, signs: Path
) -> None:
    tick(instance)
    assert keys_of(instance) == {"all": [PARTITION], "sft": [PARTITION], "released": [], "rl": []}
    update_partitions(workspace, instance, {"sft": ["demo-0000", "demo-0001"]})
    assert keys_of(instance)["sft"] == [PARTITION, "demo-0000", "demo-0001"]
    add_samples(workspace, "demo-0000")
    tick(instance)
    assert keys_of(instance)["all"] == [PARTITION, "demo-0000", "demo-0001"]


@pytest.mark.parametrize(
    ("config", "uses"),
    [
        (SourceConfig(kind="parquet", path="/data"), {"all", "sft"}),
        (SourceConfig(kind="parquet", path="/data", used_for=("rl",)), {"all", "rl"}),
        (SourceConfig(kind="parquet", path="/data", used_for=("sft", "rl")), {"all", "sft", "rl"}),
        (SourceConfig(kind="parquet", path="/data", used_for=()), {"all"}),
        (public_source("mmk12"), {"all", "rl"}),
        (public_source("thyme_sft"), {"all", "released"}),
    ],
)
def test_a_source_says_what_takes_it(
    instance: dg.DagsterInstance, workspace: Workspace, config: SourceConfig, uses: set[str]
) -> None:
    Catalog(workspace.sources).add("streets", config)
    update_partitions(workspace, instance)
    assert {use for use, keys in keys_of(instance).items() if "streets-0000" in keys} == uses


def test_a_source_that_is_added_or_removed_while_the_ui_runs_is_noticed_at_the_next_tick(
    instance: dg.DagsterInstance, workspace: Workspace
) -> None:
    tick(instance)
    before = keys_of(instance)
    file = Catalog(workspace.sources).add("streets", SourceConfig(kind="parquet", path="/data", n_shards=2))
    tick(instance)
    assert keys_of(instance)["sft"] == ["streets-0000", "streets-0001"]
    file.unlink()
    tick(instance)
    assert keys_of(instance) == before


def test_what_a_command_uses_a_shard_for_stays_once_there_is_a_table(
    instance: dg.DagsterInstance, workspace: Workspace, signs: Path
) -> None:
    update_partitions(workspace, instance, {"rl": [PARTITION]})
    assert PARTITION in keys_of(instance)["rl"]
    tick(instance)
    assert PARTITION not in keys_of(instance)["rl"], "the command was killed before its first stage ended"
    for asset in ("rl_candidates", "released_code/drafts"):
        table = workspace.tables.root / asset / f"{PARTITION}.parquet"
        table.parent.mkdir(parents=True)
        table.touch()
    tick(instance)
    assert all(PARTITION in keys for keys in keys_of(instance).values())


def test_a_shard_that_a_run_is_about_to_need_is_not_removed(
    instance: dg.DagsterInstance, workspace: Workspace, signs: Path
) -> None:
    update_partitions(workspace, instance, {"rl": [PARTITION]})
    run_id = "00000000-0000-4000-8000-000000000001"
    tags = {"dagster/partition": PARTITION}
    instance.add_run(dg.DagsterRun("rl_prompts", run_id=run_id, status=dg.DagsterRunStatus.STARTED, tags=tags))
    tick(instance)
    assert PARTITION in keys_of(instance)["rl"]
    instance.report_run_canceled(instance.get_run_by_id(run_id))
    tick(instance)
    assert PARTITION not in keys_of(instance)["rl"]


def test_a_source_that_is_wrong_fails_the_tick_and_changes_nothing(
    instance: dg.DagsterInstance, workspace: Workspace, signs: Path
) -> None:
    tick(instance)
    before = keys_of(instance)
    (workspace.sources / "streets.yaml").write_text("kind: cards\npath: /data\n")
    with pytest.raises(Exception, match=r"streets.yaml: kind: Input should be"):
        tick(instance)
    assert keys_of(instance) == before


def test_runs_that_were_made_with_static_partitions_count(
    instance: dg.DagsterInstance, workspace: Workspace, signs: Path
) -> None:
    """As versions before wrote them: every shard a static partition of every asset."""
    shards = dg.StaticPartitionsDefinition(["demo-0000", "demo-0001", "demo_rl-0000", PARTITION])

    @dg.asset(key="samples", partitions_def=shards)
    def samples() -> None: ...

    @dg.asset(key=["crop", "drafts"], partitions_def=shards, deps=["samples"])
    def drafts() -> None: ...

    for partition in (PARTITION, "demo_rl-0000"):
        assert dg.materialize(
            [samples, drafts] if partition == PARTITION else [samples], partition_key=partition, instance=instance
        ).success
        add_samples(workspace, partition)
    with_cache = {key: materialized(instance, key, shards) for key in (samples.key, drafts.key)}
    tick(instance)
    assert materialized(instance, dg.AssetKey("samples"), SHARDS) == with_cache[samples.key]
    assert materialized(instance, stage_key("crop", "drafts"), SHARDS_OF["sft"]) == {PARTITION}


def materialized(instance: dg.DagsterInstance, key: dg.AssetKey, partitions: dg.PartitionsDefinition) -> set[str]:
    """As the UI counts them."""
    with partition_loading_context(dynamic_partitions_store=instance):
        value = get_and_update_asset_status_cache_value(instance, key, partitions)
        return set(value.deserialize_materialized_partition_subsets(partitions).get_partition_keys())


def test_a_source_is_read_in_a_run_of_its_own_too(instance: dg.DagsterInstance, signs: Path) -> None:
    result = materialize_shard(instance, SAMPLES)
    (evaluation,) = result.get_asset_check_evaluations()
    assert evaluation.passed
    assert materialized(instance, dg.AssetKey("samples"), SHARDS) == {PARTITION}


def test_what_is_made_of_a_source_is_out_of_date_when_rows_changed_and_not_when_it_was_read_again(
    instance: dg.DagsterInstance, signs: Path
) -> None:
    def version() -> str:
        (event,) = materialize_shard(instance, SAMPLES).get_asset_materialization_events()
        return str(event.materialization.tags["dagster/data_version"])

    first = version()
    assert version() == first
    questions = signs / "questions.jsonl"
    questions.write_text(questions.read_text().replace("S0X", "S0Y"))
    assert version() != first
