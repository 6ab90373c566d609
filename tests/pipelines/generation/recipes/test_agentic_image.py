"""Agentic image: the oracle's rows are executed and kept; what a policy does wrong has its reason."""

from __future__ import annotations

import pytest

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes.agentic_image import recipe
from darkroom.pipelines.records import Trajectory, Truth, TruthBox
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.scripted import run_all, taken_out

PARTITION = "small-0000"


@pytest.fixture
def family(workspace: Workspace, small_source, make_image, encoded) -> Family:
    large = SourceRow(
        *("large/0", (encoded(make_image(7, 400, 300)),), "What is it?", "it"),
        truth=Truth(boxes=(TruthBox("thing", 0, 0, 300, 300),)),
    )
    words = SourceRow("words/0", (), "What is 2 + 2?", "4")
    source = type(small_source)(extra=(large, words))
    engine.intake(workspace, source, 0, PARTITION)
    made = Family(workspace, recipe, PARTITION)
    run_all(made)
    return made


def test_the_oracles_rows_are_kept_and_others_are_told_apart(family: Family):
    kept = family.workspace.tables.read(family.key("trajectories"), Trajectory)
    rejects = taken_out(family)
    assert len(kept) == 5
    assert {reject.source_row: reject.reason for reject in rejects} == {
        "large/0": "unsuitable",
        "words/0": "not_applicable",
    }
    for made in kept:
        assert made.protocol == "pyvision"
        assert 2 <= len(made.rounds) <= 3
        assert all(turn.observation.images for turn in made.rounds)
        assert made.loss_policy == "all_rounds"


def test_the_oracle_words_vary(family: Family):
    kept = family.workspace.tables.read(family.key("trajectories"), Trajectory)
    assert len({made.rounds[0].thought for made in kept} | {made.final_thought for made in kept}) >= 4
