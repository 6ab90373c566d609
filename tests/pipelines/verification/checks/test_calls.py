"""Calls of the crop tool: how they are made, and what they show. The target is (200, 120, 260, 150) of 640 x 480."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.pipelines.models.protocols.tool_call import crop_line
from darkroom.pipelines.records import Observation, Round, Truth
from darkroom.pipelines.verification.checks import Flaw, calls_are_valid, mode_is_obeyed, zooms_on_target

ON_TARGET = [0.28, 0.2, 0.44, 0.36]


@pytest.fixture
def called(make_case, make_image, store):
    """A rollout that called with each of ``boxes`` on the image beside it and was shown what the tool cuts out."""

    def make(*calls: tuple[list[float], int], mode: str = "free", style: str = "tool", **changes):
        images, rounds = [make_image(3, 640, 480)], []
        for sides, target in calls:
            source = images[target - 1] if 1 <= target <= len(images) else images[0]
            width, height = source.size
            corners = [round(side * length) for side, length in zip(sides, (width, height) * 2, strict=True)]
            shown = ()
            if 0 <= corners[0] < corners[2] <= width and 0 <= corners[1] < corners[3] <= height:
                images.append(source.crop(tuple(corners)))
                shown = (store.add_pixels(images[-1]),)
            rounds.append(Round("", crop_line(sides, target), Observation("ok", "", images=shown)))
        case = make_case(rounds=tuple(rounds), hint={"style": style}, **changes)
        return replace(case, trajectory=replace(case.trajectory, mode=mode))

    return make


@pytest.mark.parametrize(
    "calls", [(), ((ON_TARGET, 1),), ((ON_TARGET, 1), ([0.1, 0.1, 0.9, 0.9], 2)), (([0, 0, 1, 1], 1),)]
)
def test_calls_on_images_that_there_are_are_valid(called, calls):
    assert calls_are_valid(called(*calls)).passed


@pytest.mark.parametrize(
    ("sides", "target", "told"),
    [
        ([0.28, 0.2, 1.44, 0.36], 1, "not in 0..1"),
        ([-0.1, 0.2, 0.44, 0.36], 1, "not in 0..1"),
        ([180, 96, 280, 172], 1, "not in 0..1"),
        ([0.44, 0.2, 0.28, 0.36], 1, "not ordered"),
        ([0.28, 0.2, 0.44, 0.2], 1, "not ordered"),
        (ON_TARGET, 0, "no image 0"),
        (ON_TARGET, 2, "no image 2"),
        (ON_TARGET, -1, "no image -1"),
    ],
)
def test_a_call_that_makes_no_sense_is_invalid(called, sides, target, told):
    found = calls_are_valid(called((sides, target)))
    assert (found.passed, found.reason) == (False, Flaw.CALL_INVALID)
    assert told in found.detail


@pytest.mark.parametrize("code", ["print(7)", "crop_image_normalized(bbox_2d=box, target_image=1)", "", "x = ("])
def test_another_program_is_no_call(make_case, code):
    found = calls_are_valid(make_case(code=code))
    assert (found.passed, found.reason) == (False, Flaw.CALL_INVALID)


def test_a_call_on_the_target_shows_it(called):
    found = zooms_on_target(called((ON_TARGET, 1)))
    assert (found.passed, found.score) == (True, 1.0)


def test_the_last_call_counts_also_where_it_cuts_a_cut_out(called):
    assert zooms_on_target(called(([0.1, 0.1, 0.6, 0.6], 1), ([0.3, 0.15, 0.75, 0.6], 2))).passed


def test_a_row_without_calls_has_nothing_to_show(called):
    assert zooms_on_target(called()).passed


def test_rounds_between_calls_that_are_none_are_passed_over_to_the_last_call(called):
    case = called((ON_TARGET, 1), ([0.6, 0.6, 0.8, 0.8], 1))
    other = Round("", "print(7)", Observation("ok", "7"))
    for rounds, passes in (
        ((other, *case.trajectory.rounds[:1], other), True),
        ((other, *case.trajectory.rounds), False),
    ):
        mixed = replace(case, trajectory=replace(case.trajectory, rounds=rounds))
        assert (zooms_on_target(mixed).passed, zooms_on_target(mixed).detail == "no call") == (passes, False)
        assert calls_are_valid(mixed).detail.startswith("round 1 is no call")
    only_other = replace(case, trajectory=replace(case.trajectory, rounds=(other,)))
    assert zooms_on_target(only_other).detail == "no call"


def test_the_last_image_of_a_call_counts(called):
    case = called((ON_TARGET, 1), ([0.6, 0.6, 0.8, 0.8], 1))
    hit, miss = (turn.observation.images[0] for turn in case.trajectory.rounds)
    for shown, passes in (((miss, hit), True), ((hit, miss), False)):
        turn = Round("", crop_line(ON_TARGET, 1), Observation("ok", "", images=shown))
        assert zooms_on_target(replace(case, trajectory=replace(case.trajectory, rounds=(turn,)))).passed is passes


def test_where_no_target_is_known_any_zoom_will_do(called):
    assert zooms_on_target(called(([0.6, 0.6, 0.8, 0.8], 1), truth=Truth())).passed


@pytest.mark.parametrize(
    ("sides", "flaw"),
    [
        ([0.6, 0.6, 0.8, 0.8], Flaw.TARGET_CUT),
        ([0.28, 0.2, 0.36, 0.36], Flaw.TARGET_CUT),
        ([0, 0, 1, 1], Flaw.CROP_TOO_LARGE),
        ([0.1, 0.1, 0.8, 0.6], Flaw.CROP_TOO_LARGE),
    ],
)
def test_a_zoom_that_misses_or_is_lazy_fails(called, sides, flaw):
    found = zooms_on_target(called((sides, 1)))
    assert (found.passed, found.reason) == (False, flaw)


def test_pixels_count_and_not_what_the_call_says(make_case, make_image):
    elsewhere = make_image(9, 640, 480).crop((180, 96, 280, 172))
    assert zooms_on_target(make_case(code=crop_line(ON_TARGET, 1), crop=elsewhere)).reason == Flaw.NOT_A_CROP
    assert zooms_on_target(make_case(code=crop_line(ON_TARGET, 1), crop=None)).reason == Flaw.NOT_A_CROP


@pytest.mark.parametrize(
    ("mode", "style", "n_calls"),
    [("forced", "tool", 1), ("forced", "tool", 2), ("forbidden", "text", 0), ("free", "tool", 1), ("free", "text", 0)],
)
def test_a_mode_is_obeyed(called, mode, style, n_calls):
    assert mode_is_obeyed(called(*[(ON_TARGET, 1)] * n_calls, mode=mode, style=style)).passed


@pytest.mark.parametrize(
    ("mode", "style", "n_calls"),
    [("forced", "tool", 0), ("forbidden", "text", 1), ("free", "tool", 0), ("free", "text", 1), ("forced", "text", 0)],
)
def test_a_mode_that_is_not_obeyed_is_violated(called, mode, style, n_calls):
    found = mode_is_obeyed(called(*[(ON_TARGET, 1)] * n_calls, mode=mode, style=style))
    assert (found.passed, found.reason, found.score) == (False, Flaw.MODE_VIOLATED, n_calls)
