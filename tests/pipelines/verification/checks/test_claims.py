"""Claims about what can be seen, against what was measured: on pixels, and on sentences with their truth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.pipelines.records import ImageRef, Observation, Round, Truth, TruthBox
from darkroom.pipelines.verification.checks import Flaw
from darkroom.pipelines.verification.checks.claims import claims_hold, claims_in
from tests.measurements.claims import cases, measure

REGION = (180, 100, 280, 170)


def kinds(text: str) -> set[str]:
    return {claim.kind for claim in claims_in(text)}


@pytest.fixture
def cropped(make_case, make_image):
    """The crop of ``make_case``, shown so many times larger."""

    def make(scale: int = 1, **said):
        crop = make_image(3, 640, 480).crop(REGION)
        return make_case(crop=crop.resize((crop.width * scale, crop.height * scale)), **said)

    return make


@pytest.mark.parametrize(
    "said", [{"thought": "I crop the sign and enlarge it."}, {"final_thought": "Enlarged, it says STOP."}]
)
def test_nothing_is_enlarged_by_a_crop_as_it_is(cropped, said):
    found = claims_hold(cropped(1, **said))
    assert (found.passed, found.reason) == (False, Flaw.CLAIM_CONTRADICTED)
    assert found.detail.endswith("but nothing was enlarged")
    assert claims_hold(cropped(3, **said)).passed


def test_a_comment_claims_as_a_thought_does(cropped):
    code = f"# enlarge it\nimage.crop({REGION}).save(path)"
    assert not claims_hold(cropped(1, code=code)).passed
    assert claims_hold(cropped(3, code=code)).passed


def test_the_whole_image_is_no_closer_look(make_case, make_image):
    whole = make_image(3, 640, 480)
    assert not claims_hold(make_case(crop=whole, final_thought="Up close it says STOP.")).passed
    assert not claims_hold(make_case(rounds=(), final_thought="The enlarged view shows STOP.")).passed


@pytest.mark.parametrize(
    ("box", "small", "clear"), [((200, 120, 214, 134), True, False), ((200, 120, 300, 220), False, True)]
)
def test_size_is_that_on_the_models_pixels(make_case, box, small, clear):
    truth = Truth(boxes=(TruthBox("sign", *box),))
    said = ("The sign is too small to read.", "The sign is plain to see.")
    passed = [claims_hold(make_case(rounds=(), final_thought=text, truth=truth)).passed for text in said]
    assert passed == [small, clear]


def test_a_faint_image_is_not_plain_to_see_and_a_bright_one_not_too_dark(make_case, make_image, store):
    image = make_image(3, 640, 480)
    faint = store.add_pixels(image.point([20 + level // 12 for level in range(256)] * 3))

    def passed(shown: ImageRef, text: str) -> bool:
        case = make_case(rounds=(), final_thought=text, images=(shown,), truth=Truth())
        return claims_hold(replace(case, trajectory=replace(case.trajectory, images=(shown,)))).passed

    bright = store.add_pixels(image)
    clear, dark = "The sign stands out clearly.", "The picture is nearly black."
    assert [passed(faint, clear), passed(bright, clear)] == [False, True]
    assert [passed(faint, dark), passed(bright, dark)] == [True, False]


def test_a_turn_is_measured_and_so_is_what_stands_upright(make_case, make_image, store):
    image = make_image(3, 640, 480)
    turned = store.add_pixels(image.rotate(90, expand=True))

    def passed(shown, text: str) -> bool:
        rounds = (Round("I rotate it back.", "pass", Observation("ok", "", images=(shown,))),)
        case = make_case(rounds=rounds, final_thought=text, images=(turned,), truth=Truth(angle=90.0))
        return claims_hold(replace(case, trajectory=replace(case.trajectory, images=(turned,)))).passed

    assert passed(store.add_pixels(image), "Now the picture is upright.")
    assert not passed(turned, "It says STOP.")
    assert not passed(store.add_pixels(image.rotate(180)), "Now the picture is upright.")


def test_what_is_denied_asked_or_quoted_claims_nothing():
    for text in (
        "I will not enlarge it.",
        "There are five badges, and none of them can be read at this size.",
        "Is it too small to read?",
        "The button says 'zoom in to see more'.",
        "Nothing has to be cropped, turned or brightened.",
        "It cannot be read clearly.",
        "The picture is not turned over.",
        "The contrast is not low.",
        "I would not call the orientation right.",
        "So that I can clearly see the badge.",
    ):
        assert kinds(text) == set(), text


@pytest.mark.parametrize(
    "text",
    [
        "With more pixels each letter should be clearly visible.",
        "In the next view the number will be easy to read.",
        "I hope it is big enough to read.",
        "Once it is done, the label is well lit.",
        "Making it brighter gives good contrast.",
        "It is cut and scaled so that the badge fills the view.",
    ],
)
def test_what_is_planned_is_not_yet_plain_to_see(text):
    assert kinds(text).isdisjoint({"clear", "lit", "upright"})


@pytest.mark.parametrize(
    "text",
    [
        "The sky is very dark, a storm must be coming.",
        "White fills the frame and the letters are gone.",
        "The tower leans slightly to the right.",
        "The lines rise slightly after 2000.",
        "The scale factor is 5, so the area grows by 25.",
        "Sales rose by a factor of two.",
        "The mirror above the sofa hangs crooked.",
        "I leave a margin of about 15 pixels around it.",
        "The digits are arranged vertically.",
        "I turn to the table below.",
        "The crop has to decide.",
        "The correct orientation is unknown.",
        "It is hard to tell the twins apart.",
        "The picture has strong contrast.",
    ],
)
def test_words_of_scenes_and_charts_claim_nothing_of_the_view(text):
    assert kinds(text) <= {"lit"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Whatever it says is crammed into a handful of pixels.", "too_small"),
        ("From across the street no letter can be recognised without zooming in.", "too_small"),
        ("The numerals are tall and bold.", "clear"),
        ("A closer view would be a waste of time.", "clear"),
        ("The lettering sinks into the gloom.", "too_faint"),
        ("The exposure is spot on.", "lit"),
        ("Its top and bottom have been swapped.", "upside_down"),
        ("The receipt deviates by a few degrees.", "slightly_turned"),
        ("There is nothing to straighten.", "upright"),
        ("The orientation is not right.", "turned"),
        ("A fivefold blow-up shows a crown.", "times"),
        ("I have four cut-outs to compare.", "views"),
    ],
)
def test_classes_of_words_join_in_ways_that_no_list_has(text, kind):
    assert kind in kinds(text)


def test_two_claims_of_a_sentence_are_two(cropped):
    assert kinds("The sign is too small, so I zoom in and enlarge it.") == {"too_small", "zoom", "enlarge"}


def test_a_row_without_images_has_nothing_to_compare_with(make_case):
    case = make_case(rounds=(), final_thought="The enlarged frames show it.")
    assert claims_hold(replace(case, trajectory=replace(case.trajectory, images=()))).passed


def test_a_view_that_cannot_be_measured_is_not_judged(make_case, make_image):
    assert claims_hold(make_case(crop=make_image(77, 64, 64), final_thought="Enlarged, it says STOP.")).passed


def test_the_held_out_claims_are_told_apart_as_the_page_says():
    """docs/claims.md has the figures; ``python -m tests.measurements.claims``."""
    n_cases = [len(list(cases(held_out=held_out))) for held_out in (True, False)]
    assert min(n_cases) >= 90
    recall, alarms = measure(held_out=True)
    assert (recall.n, recall.of) == (55, 55)
    assert alarms.n == 0


@pytest.mark.parametrize("name", ["claims_new", "claims_after"])
def test_claims_of_factors_counts_and_turns_that_were_not_looked_at_are_refused(name):
    recall, alarms = measure(held_out=True, name=name)
    assert recall.n / recall.of >= 0.8
    assert alarms.n <= 1


@pytest.mark.parametrize(
    ("name", "n_false", "n_true", "refused"),
    [
        ("a", 42, 48, (42, 1)),
        ("b", 42, 48, (42, 0)),
        ("c", 42, 48, (41, 1)),
        ("h", 60, 60, (59, 0)),
        ("i", 780, 804, (773, 0)),
        ("j", 58, 60, (54, 0)),
        ("k", 70, 70, (60, 1)),
    ],
)
def test_claims_in_other_voices_are_told_apart_as_the_page_says(name, n_false, n_true, refused):
    """All were looked at; docs/claims.md has what was found before."""
    recall, alarms = measure(held_out=None, name=f"claims_voices_{name}")
    assert (recall.of, alarms.of) == (n_false, n_true)
    assert (recall.n, alarms.n) == refused


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        ("I enlarge the badge fivefold.", "times", 5),
        ("# 3x zoom", "times", 3),
        ("At double size it can be read.", "times", 2),
        ("All three crops agree.", "views", 3),
        ("The third crop settles it.", "views", 3),
        ("Both close-ups agree.", "views", 2),
    ],
)
def test_factors_and_counts_are_read_from_words(text, kind, number):
    assert [claim.number for claim in claims_in(text) if claim.kind == kind] == [number]


@pytest.mark.parametrize(
    "text",
    [
        "The crop shows a double door.",
        "The enlarged view shows the word four times.",
        "I show the page with two columns.",
        "This gives three crops a year.",
        "The third bar is the highest.",
        "Enlarging the badge is not necessary.",
    ],
)
def test_other_numbers_claim_no_factor_and_no_count(text):
    assert kinds(text).isdisjoint({"times", "views"})


def test_a_hostile_thought_is_read_in_time(make_case):
    case = make_case(rounds=(), final_thought="is not so very too small, " * 20_000)
    assert claims_hold(case).passed is not None
