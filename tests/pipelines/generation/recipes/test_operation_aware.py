"""Operation-aware: small things are zoomed in on by a call, plain ones answered in words, each in its modes."""

from __future__ import annotations

import pytest

from pipelines.generation import engine
from pipelines.generation.engine import Family
from pipelines.generation.recipes.operation_aware import MODES, prepare, recipe
from pipelines.models.policies import oracle_policy
from pipelines.records import Reject, Sample, Trajectory
from pipelines.storage.workspace import Workspace

PARTITION = "small-0000"


@pytest.fixture
def family(workspace: Workspace, small_source) -> Family:
    engine.intake(workspace, type(small_source)(n_rows=9), 0, PARTITION)
    made = Family(workspace, recipe, PARTITION)
    for stage in (made.draft, made.run):
        stage(oracle_policy(recipe.family, revision=recipe.digest))
    made.check()
    made.keep()
    made.collect_rejects()
    return made


def test_every_sample_becomes_a_row_in_one_of_its_modes(family: Family):
    kept = family.workspace.tables.read(family.key("trajectories"), Trajectory)
    assert len(kept) == 8
    assert family.workspace.tables.read(family.key("rejects"), Reject) == []
    for made in kept:
        style = "tool" if made.rounds else "text"
        assert made.mode in MODES[style]
        assert all(turn.code.startswith("crop_image_normalized(bbox_2d=[") for turn in made.rounds)
    assert {bool(made.rounds) for made in kept} == {True, False}


def test_what_is_smaller_than_a_token_is_zoomed_in_on(family: Family, store):
    for sample in family.workspace.tables.read(family.samples_key, Sample):
        prepared = prepare(sample, store)
        small = bool(sample.truth.boxes)  # 24 pixels high; the row without a box is a plain image
        assert prepared.hint["style"] == ("tool" if small else "text")
        assert bool(prepared.hint["region"]) == small


def test_the_region_holds_the_target(family: Family, store):
    for sample in family.workspace.tables.read(family.samples_key, Sample):
        if sample.truth.boxes:
            left, top, right, bottom = map(float, prepare(sample, store).hint["region"].split(", "))
            box = sample.truth.boxes[0].box
            assert 0 <= left * 640 <= box.x1 < box.x2 <= right * 640 <= 640
            assert 0 <= top * 480 <= box.y1 < box.y2 <= bottom * 480 <= 480


def test_the_call_is_told_only_where_the_row_calls(family: Family):
    told = recipe.prompt.render(question="Which?", sizes="1x1", style="tool", image="1", region="0.1, 0.2, 0.3, 0.4")
    plain = recipe.prompt.render(question="Which?", sizes="1x1", style="text", image="", region="")
    assert "bbox_2d [0.1, 0.2, 0.3, 0.4]" in told[1]
    assert "bbox_2d" not in "".join(plain)
