"""Operation-aware: small things are zoomed in on by a call, plain ones answered in words, each in its modes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PIL import Image

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import RecipeError
from darkroom.pipelines.generation.recipes.operation_aware import MODES, PROMPTS, modes, prepare, recipe
from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.scripted import run_all, taken_out

PARTITION = "small-0000"


@pytest.fixture
def family(workspace: Workspace, small_source) -> Family:
    engine.intake(workspace, type(small_source)(n_rows=9), 0, PARTITION)
    made = Family(workspace, recipe, PARTITION)
    run_all(made)
    return made


def test_every_sample_becomes_a_row_under_the_neutral_prompt(family: Family):
    kept = family.workspace.tables.read(family.key("trajectories"), Trajectory)
    assert len(kept) == 8
    assert taken_out(family) == []
    for made in kept:
        assert made.mode == "free"
        assert all(turn.code.startswith("crop_image_normalized(bbox_2d=[") for turn in made.rounds)
    assert {bool(made.rounds) for made in kept} == {True, False}


def test_what_is_smaller_than_a_token_is_zoomed_in_on(family: Family):
    for sample in family.workspace.tables.read(family.samples_key, Sample):
        prepared = prepare(sample, family.workspace.images)
        small = bool(sample.truth.boxes)  # 24 pixels high; the row without a box is a plain image
        assert prepared.hint["style"] == ("tool" if small else "text")
        assert bool(prepared.hint["region"]) == small


def test_the_region_holds_the_target(family: Family):
    for sample in family.workspace.tables.read(family.samples_key, Sample):
        if sample.truth.boxes:
            hint, box = prepare(sample, family.workspace.images).hint, sample.truth.boxes[0].box
            for name in ("region", "told_region"):
                left, top, right, bottom = map(float, hint[name].split(", "))
                assert 0 <= left * 640 <= box.x1 < box.x2 <= right * 640 <= 640
                assert 0 <= top * 480 <= box.y1 < box.y2 <= bottom * 480 <= 480
            assert all(len(side) <= 4 for side in hint["told_region"].split(", ")), "hundredths"


def rendered(**slots: str) -> tuple[str, str]:
    return recipe.prompt.render(question="Which?", sizes="1x1", facts="", **slots)


def test_the_call_is_told_only_where_the_row_calls():
    told = rendered(style="tool", image="1", told_region="0.1, 0.2, 0.3, 0.4")
    plain = rendered(style="text", image="", told_region="")
    assert "bbox_2d [0.1, 0.2, 0.3, 0.4]" in told[1]
    assert "bbox_2d" not in "".join(plain)


def test_forced_and_forbidden_prompts_are_an_option(family: Family, monkeypatch):
    neutral = recipe.options()
    monkeypatch.setenv(PROMPTS, "all")
    assert recipe.options() == MODES["all"] != neutral
    samples = family.workspace.tables.read(family.samples_key, Sample)
    drawn = {
        (prepared.hint["style"], prepared.mode)
        for prepared in (prepare(sample, family.workspace.images) for sample in samples)
    }
    assert drawn <= {("tool", "forced"), ("tool", "free"), ("text", "forbidden"), ("text", "free")}
    assert ("tool", "forced") in drawn
    monkeypatch.setenv(PROMPTS, "some")
    with pytest.raises(RecipeError, match="DARKROOM_OPERATION_PROMPTS is 'some': expected one of neutral, all"):
        modes()


def test_a_turned_or_faint_image_is_unsuitable(family: Family):
    sample = family.workspace.tables.read(family.samples_key, Sample)[0]
    turned = replace(sample, truth=replace(sample.truth, angle=90.0))
    faint = family.workspace.images.add_pixels(Image.new("RGB", (640, 480), (90, 90, 90)))
    for unsuitable in (turned, replace(sample, images=(faint,), truth=replace(sample.truth, boxes=()))):
        with pytest.raises(RowError) as error:
            prepare(unsuitable, family.workspace.images)
        assert error.value.reason is Reason.UNSUITABLE


def test_the_kind_that_is_balanced_is_whether_a_row_calls(family: Family):
    rows = family.workspace.tables.read(family.key("trajectories"), Trajectory)
    assert {recipe.balanced_by(row) for row in rows} == {"with a call", "without a call"}
