"""A small family of the crop recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import Recipe, load_recipes
from darkroom.pipelines.storage.workspace import Workspace

PARTITION = "small-0000"


@pytest.fixture
def recipe() -> Recipe:
    return load_recipes()["crop"]


@pytest.fixture
def family(workspace: Workspace, recipe: Recipe, small_source) -> Family:
    engine.intake(workspace, small_source, 0, PARTITION)
    return Family(workspace, recipe, PARTITION)


@pytest.fixture
def ran(shipped: Path, workspace: Workspace, recipe: Recipe) -> Family:
    """The family after all stages, made once and copied."""
    family = Family(workspace, recipe, PARTITION)
    family.collect_rejects()
    return family
