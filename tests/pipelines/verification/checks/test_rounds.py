"""Two crops in a row: the first as designed, the second explained."""

from __future__ import annotations

import pytest

from darkroom.pipelines.records import Observation, Round
from darkroom.pipelines.verification.checks import (
    first_crop_is_generous,
    first_crop_misses,
    second_round_is_explained,
    two_programs,
)

# the target of ``make_case`` lies at (200, 120, 260, 150) of 640x480 pixels
EXACT, GENEROUS, WRONG = (188, 108, 272, 162), (120, 60, 330, 220), (400, 300, 500, 380)
FIRST_THOUGHT = "The sign is small, so I crop around the left."
SECOND_THOUGHT = "This view holds the sign, but too much beside it; I go closer."


@pytest.fixture
def crops(make_case, make_image, store):
    """A rollout that shows these parts of the image, one per round."""

    def make(*boxes, thoughts=(FIRST_THOUGHT, SECOND_THOUGHT, "Once more."), seed=3):
        original = make_image(seed, 640, 480)
        rounds = [
            Round(said, f"image.crop({box})", Observation("ok", "", images=(store.add_pixels(original.crop(box)),)))
            for said, box in zip(thoughts, boxes, strict=False)
        ]
        return make_case(rounds=tuple(rounds))

    return make


def test_a_generous_and_an_exact_crop_pass(crops):
    case = crops(GENEROUS, EXACT)
    assert all(check(case).passed for check in (two_programs, first_crop_is_generous, second_round_is_explained))


def test_a_wrong_and_an_exact_crop_pass(crops):
    case = crops(WRONG, EXACT)
    assert all(check(case).passed for check in (two_programs, first_crop_misses, second_round_is_explained))


@pytest.mark.parametrize(
    ("boxes", "flaw"),
    [((), "too_few_rounds"), ((EXACT,), "too_few_rounds"), ((WRONG, GENEROUS, EXACT), "too_many_programs")],
)
def test_another_number_of_programs_fails(crops, boxes, flaw):
    found = two_programs(crops(*boxes))
    assert (found.reason, found.score) == (flaw, len(boxes))


@pytest.mark.parametrize(
    ("boxes", "flaw"),
    [
        ((), "not_a_crop"),
        ((GENEROUS,), "not_a_crop"),
        ((WRONG, EXACT), "target_cut"),
        (((230, 60, 430, 220), EXACT), "target_cut"),
        (((0, 0, 640, 480), EXACT), "crop_too_large"),
        (((0, 0, 600, 400), EXACT), "crop_too_large"),
        ((EXACT, EXACT), "crop_too_small"),
        ((EXACT, GENEROUS), "crop_too_small"),
        (((180, 100, 280, 166), EXACT), "crop_too_small"),
    ],
)
def test_a_first_crop_that_is_not_generous_fails(crops, boxes, flaw):
    found = first_crop_is_generous(crops(*boxes))
    assert (found.passed, found.reason) == (False, flaw)


@pytest.mark.parametrize("check", [first_crop_is_generous, first_crop_misses])
def test_crops_of_another_image_are_none(crops, check):
    case = crops(GENEROUS, EXACT, seed=9)
    assert check(case).reason == "not_a_crop"


@pytest.mark.parametrize(("box", "shown"), [(WRONG, 0.0), ((248, 100, 348, 200), 0.2)])
def test_a_first_crop_may_show_a_little_of_the_target(crops, box, shown):
    found = first_crop_misses(crops(box, EXACT))
    assert (found.passed, found.score) == (True, pytest.approx(shown, abs=0.03))


@pytest.mark.parametrize("box", [EXACT, GENEROUS, (230, 100, 330, 200)])
def test_a_first_crop_that_shows_the_target_has_not_missed_it(crops, box):
    assert first_crop_misses(crops(box, EXACT)).reason == "target_shown_too_early"


def test_a_rollout_without_a_crop_has_not_missed(crops):
    assert first_crop_misses(crops()).reason == "not_a_crop"


@pytest.mark.parametrize("thought", ["", "Closer.", FIRST_THOUGHT, FIRST_THOUGHT + " Yes."])
def test_a_second_thought_that_is_empty_or_said_before_explains_nothing(crops, thought):
    found = second_round_is_explained(crops(GENEROUS, EXACT, thoughts=(FIRST_THOUGHT, thought)))
    assert (found.passed, found.reason) == (False, "not_explained")


def test_a_single_round_explains_nothing(crops):
    assert second_round_is_explained(crops(EXACT)).reason == "not_explained"


@pytest.mark.parametrize(
    "told",
    [
        "The first crop was wrong on purpose, so now I take another part.",
        "As instructed, I now crop the part that is further left.",
        "I was given another region now, so I crop that one instead.",
        "The exact region is smaller than this one, so I go closer.",
        "This is the ground truth of the sign, which is further left.",
        "I deliberately missed the sign; it is further to the left.",
    ],
)
def test_a_second_thought_that_speaks_of_a_plan_is_told_apart(crops, told):
    found = second_round_is_explained(crops(WRONG, EXACT, thoughts=(FIRST_THOUGHT, told)))
    assert (found.passed, found.reason) == (False, "hint_mentioned")
