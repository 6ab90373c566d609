"""What ``dg`` loads: the assets of every recipe, the jobs, the resources. Only wires."""

import dagster as dg

from assets import annotation, training
from assets.datasets import sft_dataset_asset
from assets.families import family_assets
from assets.jobs import datasets_job, rl_dataset_job, rl_job, sft_job, train_job
from assets.launching import LauncherResource
from assets.partitions import shard_partitions
from assets.resources import PolicyResource, WorkspaceResource
from assets.rl import rl_assets, rl_dataset_asset
from assets.samples import samples_asset
from pipelines.recipes import load_recipes
from pipelines.workspace import Workspace


def definitions() -> dg.Definitions:
    """The code location, as the environment and the recipes on disk determine it."""
    partitions = shard_partitions(Workspace.from_environment())
    recipes = list(load_recipes().values())
    return dg.Definitions(
        assets=[
            samples_asset(partitions),
            *(asset for recipe in recipes for asset in family_assets(recipe, partitions)),
            annotation.expert_reviews_asset(recipes),
            sft_dataset_asset(recipes, partitions),
            *rl_assets(partitions),
            rl_dataset_asset(partitions),
            *dg.load_assets_from_modules([annotation, training]),
        ],
        jobs=[
            sft_job(recipes),
            datasets_job(),
            rl_job(),
            rl_dataset_job(),
            train_job(),
            annotation.annotation_job(),
            annotation.recorded_annotations_job(),
        ],
        sensors=[annotation.annotation_sync],
        resources={
            "workspace": WorkspaceResource(),
            "policy": PolicyResource.from_settings(),
            "converter": PolicyResource.from_settings("CONVERT"),
            "judge": PolicyResource.from_settings("JUDGE"),
            "student": PolicyResource.from_settings("STUDENT"),
            "launcher": LauncherResource.from_settings(),
        },
        # a stage is parallel inside; a process per step would only cost its start
        executor=dg.in_process_executor,
    )


defs = definitions()
