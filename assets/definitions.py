"""What ``dg`` loads: the assets of every recipe, the resources, and jobs as named selections of assets."""

from __future__ import annotations

import gc

_COLLECTS = gc.isenabled()
# what is loaded stays: looking through it for garbage would be a fifth of the time
gc.disable()

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import yaml

from annotation.rounds.image_pool import POOL
from annotation.rounds.tables import ORDER, REFUSED
from assets.graph import annotation, training
from assets.graph.automation import nightly, shard_sensor
from assets.graph.datasets import expert_reviews_asset, pivots_asset, rl_dataset_asset, sft_dataset_asset
from assets.graph.families import family_assets, samples_asset
from assets.graph.flywheel import GROUP as FLYWHEEL
from assets.graph.flywheel import FlywheelResource, flywheel_assets, turn_partitions
from assets.graph.partitions import source_partitions
from assets.graph.resources import PolicyResource, WorkspaceResource
from assets.graph.rl import GROUP as RL_GROUP
from assets.graph.rl import rl_assets
from assets.launching import LauncherResource
from assets.runs.lost_starts import lost_starts
from pipelines.generation.recipes import Recipe
from pipelines.generation.released import all_recipes
from pipelines.storage.workspace import Workspace

if TYPE_CHECKING:  # dagster does not export the type of what `define_asset_job` returns
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

SAMPLES, SFT, RELEASED = "source_samples", "sft_trajectories", "released_trajectories"
DATASETS, PIVOTS, TRAIN, STREET_SIGNS = "datasets", "pivot_dataset", "train", "street_sign_datasets"
RL, RL_DATASET = "rl_prompts", "rl_dataset_all"
ANNOTATION, RECORDED_ANNOTATIONS = annotation.JOB, "recorded_annotations"
FINISHED_ANNOTATIONS = "finished_annotations"
BUNDLED_RECORDING = {step: {"recording": "bundled"} for step in ("annotation_pool", "annotation_rounds")}
"""Settings with which these steps read the bundled recording."""
_DESCRIPTIONS = yaml.safe_load(Path(__file__).with_name("jobs.yaml").read_text(encoding="utf-8"))


def definitions() -> dg.Definitions:
    """The code location, from the environment and the recipes on disk."""
    workspace, flywheel = Workspace.from_environment(), FlywheelResource.from_environment()
    recipes = list(all_recipes().values())
    return dg.Definitions(
        assets=[
            samples_asset(),
            *(asset for recipe in recipes for asset in family_assets(recipe)),
            expert_reviews_asset(recipes),
            sft_dataset_asset(recipes),
            pivots_asset(recipes),
            *rl_assets(),
            rl_dataset_asset(),
            *flywheel_assets(turn_partitions(workspace, flywheel.source)),
            *dg.load_assets_from_modules([annotation, training]),
        ],
        jobs=jobs(recipes),
        schedules=[nightly(DATASETS, 0), nightly(RL_DATASET, 30)],
        sensors=[annotation.annotation_sync, source_partitions, lost_starts, *_shard_sensors(recipes)],
        resources={
            "workspace": WorkspaceResource(),
            "policy": PolicyResource.from_environment(),
            "converter": PolicyResource.from_environment("CONVERT"),
            "judge": PolicyResource.from_environment("JUDGE"),
            "student": PolicyResource.from_environment("STUDENT"),
            "flywheel": flywheel,
            "launcher": LauncherResource.from_environment(),
        },
        # stages are parallel inside; a process per step would only add its start-up time
        executor=dg.in_process_executor,
    )


def _shard_sensors(recipes: Sequence[Recipe]) -> list[dg.AutomationConditionSensorDefinition]:
    released, drafted = _families(recipes)
    return [shard_sensor("sft", drafted), shard_sensor("released", released), shard_sensor("rl", [RL_GROUP])]


def _families(recipes: Sequence[Recipe]) -> tuple[list[str], list[str]]:
    """Those of releases, and those that are drafted."""
    released = [recipe.family for recipe in recipes if recipe.writer == "released"]
    return released, [recipe.family for recipe in recipes if recipe.writer != "released"]


def jobs(recipes: Sequence[Recipe]) -> list[UnresolvedAssetJobDefinition]:
    """All jobs of the code location."""
    assets, groups = dg.AssetSelection.assets, dg.AssetSelection.groups
    released, drafted = _families(recipes)
    rounds = ["/".join(table.asset) for table in (*ORDER, REFUSED)]
    selections: dict[str, dg.AssetSelection] = {
        SAMPLES: assets("samples"),
        SFT: groups(*drafted),
        RELEASED: groups(*released),
        DATASETS: assets("sft_dataset"),
        PIVOTS: assets("pivots"),
        RL: groups(RL_GROUP),
        RL_DATASET: assets("rl_dataset"),
        STREET_SIGNS: assets("street_signs"),
        TRAIN: groups("train") - assets("street_signs"),
        FLYWHEEL: groups(FLYWHEEL),
        ANNOTATION: assets(*rounds),
        FINISHED_ANNOTATIONS: assets(*rounds, "rl_dataset"),
        RECORDED_ANNOTATIONS: assets("/".join(POOL.asset), *rounds),
    }
    bundled = {"ops": {step: {"config": settings} for step, settings in BUNDLED_RECORDING.items()}}
    config = {RECORDED_ANNOTATIONS: bundled}
    return [
        dg.define_asset_job(name, selection, config=config.get(name), description=_DESCRIPTIONS[name])
        for name, selection in selections.items()
    ]


defs = definitions()

gc.freeze()
if _COLLECTS:
    gc.enable()
