"""The small source as two families, shipped, and its pivots."""

from __future__ import annotations

from pathlib import Path

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import oracle_policy
from darkroom.pipelines.publishing.pivots.dataset import PivotDataset
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import SmallSource
from tests.pipelines.publishing.shipping import PARTITION

FAMILIES = ("crop", "error_correction")


def ship_pivots(home: Path) -> StorePath:
    """Into a workspace of its own; returns the folder of the pivots."""
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        engine.intake(workspace, SmallSource(), 0, PARTITION)
        for name in FAMILIES:
            recipe = load_recipes()[name]
            family = Family(workspace, recipe, PARTITION)
            for stage in (family.draft, family.run):
                stage(oracle_policy(name, revision=recipe.digest))
            family.check()
            family.keep()
            SftDataset(workspace, recipe, [PARTITION], validation_share=0.5).publish()
        pivots = PivotDataset(workspace, FAMILIES, [PARTITION])
        pivots.publish()
        return pivots.folder
