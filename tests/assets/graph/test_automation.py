"""What runs by itself once it is switched on: shards that are added, each once, through the stages that take them."""

from __future__ import annotations

from typing import Any

import dagster as dg

from darkroom.assets.graph.families import family_assets, samples_asset, stage_key
from darkroom.assets.graph.partitions import SHARDS, SHARDS_OF
from darkroom.assets.graph.rl import rl_assets
from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.recipes import load_recipes
from tests.assets.conftest import graph

CROP = [stage_key("crop", stage) for stage in (*STAGES, "rejects")]


def add(instance: dg.DagsterInstance, use: Any, shard: str) -> None:
    for partitions in (SHARDS, SHARDS_OF[use]):
        instance.add_dynamic_partitions(str(partitions.name), [shard])


def test_an_added_shard_goes_once_through_the_stages_that_take_it_and_earlier_shards_do_not() -> None:
    instance = dg.DagsterInstance.ephemeral()  # each asset asks for the partitions, and a file is opened each time
    rl = rl_assets()
    assets = [samples_asset(), *family_assets(load_recipes()["crop"]), *rl]
    defs, rl_keys = dg.Definitions(assets, resources=graph().resources), [asset.key for asset in rl]
    add(instance, "sft", "photos-0000")
    first = dg.evaluate_automation_conditions(defs, instance)
    assert first.total_requested == 0
    add(instance, "sft", "photos-0001")
    add(instance, "rl", "maths-0000")
    second = dg.evaluate_automation_conditions(defs, instance, cursor=first.cursor)
    assert [second.get_requested_partitions(key) for key in CROP] == [{"photos-0001"}] * len(CROP)
    assert [second.get_requested_partitions(key) for key in rl_keys] == [{"maths-0000"}] * len(rl_keys)
    assert second.total_requested == len(CROP) + len(rl_keys), "samples are read by the first stage"
    assert dg.evaluate_automation_conditions(defs, instance, cursor=second.cursor).total_requested == 0


def test_nothing_that_costs_is_on_from_the_start_and_every_switch_is_ours() -> None:
    repository = graph().get_repository_def()
    switches = {sensor.name: sensor.default_status.value for sensor in repository.sensor_defs}
    off = {"annotation_sync", "answered_batches", "new_sft_shards", "new_released_shards", "new_rl_shards"}
    on = {"source_partitions", "lost_starts"}
    assert switches == dict.fromkeys(off, "STOPPED") | dict.fromkeys(on, "RUNNING")
    schedules = {schedule.name: schedule.default_status.value for schedule in repository.schedule_defs}
    assert schedules == dict.fromkeys(("nightly_datasets", "nightly_rl_dataset_all"), "STOPPED")
