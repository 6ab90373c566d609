"""What a policy is told that it may claim agrees with what the check refuses, and no place is told to the pixel."""

import itertools

import pytest
from PIL import Image

from darkroom.pipelines.generation.recipes import (
    SLOT,
    as_text,
    facts_of_hint,
    in_round_numbers,
    load_recipes,
    told_region,
    visibility_facts,
)
from darkroom.pipelines.records import ImageRef, Sample, Truth, TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.checks.claims import Claim, Situation, contradiction
from darkroom.pipelines.vision.visibility import Visibility, visibility_as_given
from tests.image_files import encoded

FORBIDS = {
    "too_small": ("never call it too small", "never call it small"),
    "too_faint": ("never call it dark, faint",),
    "clear": ("do not call it clear",),
    "lit": ("do not call it clear, legible or well lit",),
    "turned": ("never call it turned",),
    "upright": ("do not call it upright",),
}
SITUATIONS = [
    Visibility(side, None, levels, angle)
    for side, levels, angle in itertools.product(
        (None, 9.0, 27.9, 28.0, 55.9, 56.0, 83.9, 84.0, 300.0),
        (None, 12.0, 47.9, 48.0, 95.9, 96.0, 250.0),
        (None, 0.0, 90.0),
    )
]


@pytest.mark.parametrize("kind", FORBIDS)
def test_what_the_check_refuses_the_prompt_forbids(kind) -> None:
    n_refused = 0
    for seen in SITUATIONS:
        if contradiction(Claim(kind, "", of_now=False), Situation(seen, None, ())):
            n_refused += 1
            assert any(words in visibility_facts(seen) for words in FORBIDS[kind]), seen
    assert n_refused


@pytest.mark.parametrize("kind", ["too_small", "too_faint", "turned", "upright"])
def test_nothing_is_forbidden_that_is_so(kind) -> None:
    for seen in SITUATIONS:
        if any(words in visibility_facts(seen) for words in FORBIDS[kind]):
            assert contradiction(Claim(kind, "", of_now=False), Situation(seen, None, ())), seen


def test_the_facts_hold_no_number_that_a_thought_could_copy() -> None:
    assert not any(char.isdigit() for seen in SITUATIONS for char in visibility_facts(seen))


def test_every_family_that_works_on_images_is_told_or_asks_for_what_is_seen() -> None:
    told = {family for family, recipe in load_recipes().items() if SLOT in recipe.prompt.slots}
    crops = {"crop", "error_correction", "further_enhancement", "operation_aware"}
    assert told == crops | {"contrast", "direct", "real_world", "rotation"}
    for family in crops:
        prompt = load_recipes()[family].prompt
        assert "is too small" not in prompt.system, "it may not be"
        assert not {"region", "first_region"} & prompt.slots, "nobody knows a place to the pixel"
    assert "only what is" in load_recipes()["agentic_image"].prompt.system


@pytest.fixture
def sample(tmp_path) -> tuple[Sample, ImageStore]:
    store = ImageStore(tmp_path.as_uri())
    image = Image.new("RGB", (1200, 900), "white")
    image.paste("black", (400, 300, 460, 360))
    truth = Truth(boxes=(TruthBox("square", 397, 303, 463, 361),), angle=0)
    made = Sample(
        sample_id="s", source="made", source_row="s", license="CC0-1.0", images=(store.ingest(encoded(image)),),
        question="What is black?", choices=(), answer="a square", truth=truth, category="object",
    )  # fmt: skip
    return made, store


def test_the_image_that_a_recipe_made_is_the_one_that_is_measured(sample) -> None:
    made, store = sample
    original = visibility_as_given(made, made.images, {}, store)
    assert "never call it dark, faint" in facts_of_hint({"visibility": original.as_json()})
    faded = store.open(made.images[0]).point([120 + level // 12 for level in range(256)] * 3)
    given = (store.add_pixels(faded, parent=made.images[0].sha256, made_by="test"),)
    hint = {"visibility": original.as_json()}
    hint["visibility_as_given"] = visibility_as_given(made, given, {"angle": 90}, store).as_json()
    facts = facts_of_hint(hint)
    assert "It is faint or dark" in facts
    assert "The image is not upright" in facts


def test_nothing_is_said_where_nothing_was_measured() -> None:
    assert facts_of_hint({}) == ""


IMAGE = ImageRef("0" * 64, 1600, 1200, "RGB", "PNG")


def test_a_told_region_is_round_and_holds_the_exact_one(sample) -> None:
    made, _ = sample
    exact = Box(397, 303, 463, 361)
    told = told_region(exact, made)
    assert told.contains(exact)
    assert told != exact
    assert all(side % 10 == 0 for side in told)


def test_a_region_that_the_question_names_is_told_as_named(sample) -> None:
    made, _ = sample
    exact = Box(397, 303, 463, 361)
    object.__setattr__(made, "question", f"What is in the box {as_text(exact)}?")
    assert told_region(exact, made) == exact


@pytest.mark.parametrize(("grows", "expected"), [(True, (120, 30, 260, 110)), (False, (130, 40, 250, 100))])
def test_round_numbers_outwards_and_inwards(grows, expected) -> None:
    assert in_round_numbers(Box(123, 37, 251, 109), IMAGE, grows=grows) == Box(*expected)


def test_a_region_too_small_to_shrink_stays() -> None:
    assert in_round_numbers(Box(3, 3, 8, 8), IMAGE, grows=False) == Box(3, 3, 8, 8)
