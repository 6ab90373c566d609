"""Named selections of assets, for the launchpad and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dagster as dg

from pipelines.recipes import Recipe

if TYPE_CHECKING:  # dagster does not export the type of what `define_asset_job` returns
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

SFT, DATASETS, TRAIN = "sft_trajectories", "datasets", "train"
RL, RL_DATASET = "rl_prompts", "rl_dataset_all"


def sft_job(recipes: Sequence[Recipe]) -> UnresolvedAssetJobDefinition:
    """Everything that is partitioned by shard: samples and every family's stages."""
    groups = ["source", *(recipe.family for recipe in recipes)]
    return dg.define_asset_job(
        SFT,
        selection=dg.AssetSelection.groups(*groups),
        description="One shard, from the source to trajectories and rejects, for every family.",
    )


def datasets_job() -> UnresolvedAssetJobDefinition:
    """What ships."""
    return dg.define_asset_job(
        DATASETS, selection=dg.AssetSelection.assets("sft_dataset"), description="The datasets of all shards, to ship."
    )


def rl_job() -> UnresolvedAssetJobDefinition:
    """Everything of RL data that is partitioned by shard."""
    return dg.define_asset_job(
        RL,
        selection=dg.AssetSelection.groups("rl") | dg.AssetSelection.assets("samples"),
        description="One shard, from the source to pass rates, tool necessity and suitability labels.",
    )


def rl_dataset_job() -> UnresolvedAssetJobDefinition:
    """The RL rows that ship."""
    return dg.define_asset_job(
        RL_DATASET, selection=dg.AssetSelection.assets("rl_dataset"), description="The RL rows of all shards, to ship."
    )


def train_job() -> UnresolvedAssetJobDefinition:
    """What is trained on the shipped datasets."""
    return dg.define_asset_job(
        TRAIN,
        selection=dg.AssetSelection.groups("train"),
        description="The checkpoints that are trained on what ships.",
    )
