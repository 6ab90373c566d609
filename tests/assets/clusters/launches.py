"""Launches of a little program from an asset, and what came of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from darkroom.assets.clusters.programs import LauncherResource, Program, launch


def run(launcher: LauncherResource, instance: dg.DagsterInstance, *words: str) -> dg.ExecuteInProcessResult:
    """A run of an asset that launches the little program."""

    def little(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        return launch(context, Program("tests.assets.little", words), launcher)

    little.__annotations__ = {"context": dg.AssetExecutionContext}
    return dg.materialize([dg.asset(little)], instance=instance, raise_on_error=False)


def failure(result: dg.ExecuteInProcessResult) -> str:
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    return str(failed.step_failure_data.user_failure_data.description)


def materialized(result: dg.ExecuteInProcessResult) -> Mapping[str, Any]:
    (event,) = result.get_asset_materialization_events()
    made = event.step_materialization_data.materialization
    assert made.tags is not None
    return {name: value.value for name, value in made.metadata.items()} | {"version": made.tags["dagster/data_version"]}


def losses(instance: dg.DagsterInstance) -> list[Any]:
    records = instance.fetch_observations(dg.AssetKey("little"), limit=10, ascending=True).records
    return [
        record.asset_observation.metadata["loss"].value
        for record in records
        if "loss" in record.asset_observation.metadata
    ]
