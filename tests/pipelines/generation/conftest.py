"""A small family of the crop recipe."""

from __future__ import annotations

import pytest

from pipelines.generation import engine
from pipelines.generation.engine import Family
from pipelines.generation.recipes import Recipe, load_recipes
from pipelines.storage.workspace import Workspace

PARTITION = "small-0000"


@pytest.fixture
def recipe() -> Recipe:
    return load_recipes()["crop"]


@pytest.fixture
def family(workspace: Workspace, recipe: Recipe, small_source) -> Family:
    engine.intake(workspace, small_source, 0, PARTITION)
    return Family(workspace, recipe, PARTITION)
