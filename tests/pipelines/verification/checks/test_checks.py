"""Every check, on a rollout that passes and on every way of failing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.pipelines.records import Edit, Observation, Round, Truth, TruthBox
from darkroom.pipelines.verification.checks import (
    answer_matches,
    crop_contains_target,
    crop_is_tight,
    executes,
    hint_stays_hidden,
    shows_an_image,
)

EVERY_CHECK = (answer_matches, crop_contains_target, crop_is_tight, executes, hint_stays_hidden, shows_an_image)


@pytest.mark.parametrize("check", EVERY_CHECK, ids=lambda check: check.name)
def test_a_sound_rollout_passes(make_case, check):
    found = check(make_case())
    assert found.passed
    assert found.name == check.name


# --- the answer


@pytest.mark.parametrize("answer", ["", "GO", "STOP or GO", "not STOP"])
def test_a_wrong_answer_is_told_beside_the_right_one(make_case, answer):
    found = answer_matches(make_case(answer=answer))
    assert not found.passed
    assert found.detail == f"answered {answer!r}, expected 'STOP'"


def test_with_choices_the_letter_answers(make_case):
    case = make_case(answer="B", choices=("A. GO", "B. STOP"))
    assert answer_matches(replace(case, sample=replace(case.sample, answer="B"))).passed


# --- execution


@pytest.mark.parametrize("status", ["error", "blocked", "timeout", "memory", "killed", "protocol"])
def test_a_program_that_did_not_end_well_fails(make_case, status):
    bad = Round("", "", Observation(status, "", error="NameError: x"))
    good = Round("", "", Observation("ok", ""))
    found = executes(make_case(rounds=(good, bad)))
    assert (found.passed, found.score, found.detail) == (False, 0.5, f"round 2: {status}: NameError: x")


def test_a_rollout_without_a_program_executes_nothing(make_case):
    assert not executes(make_case(rounds=())).passed


def test_a_rollout_without_a_program_shows_nothing(make_case):
    assert not shows_an_image(make_case(rounds=())).passed


def test_every_round_has_to_show_an_image(make_case):
    seen = make_case().trajectory.rounds[0]
    found = shows_an_image(make_case(rounds=(seen, Round("", "", Observation("ok", "12")))))
    assert (found.passed, found.detail) == (False, "no image in round 2")


# --- the crop


def test_a_crop_that_misses_the_target_fails(make_case, make_image):
    found = crop_contains_target(make_case(crop=make_image(3, 640, 480).crop((400, 300, 500, 400)), code=""))
    assert (found.passed, found.score) == (False, 0.0)
    assert "target (200, 120, 260, 150)" in found.detail


def test_a_crop_that_cuts_the_target_says_how_much_it_shows(make_case, make_image):
    found = crop_contains_target(make_case(crop=make_image(3, 640, 480).crop((230, 60, 330, 200)), code=""))
    assert not found.passed
    assert found.score == pytest.approx(0.5, abs=0.05)


def test_a_crop_of_another_image_fails(make_case, make_image):
    case = make_case(crop=make_image(9, 640, 480).crop((180, 100, 280, 170)))
    assert not crop_contains_target(case).passed
    assert not crop_is_tight(case).passed


@pytest.mark.parametrize("check", [crop_contains_target, crop_is_tight])
def test_a_rollout_that_showed_nothing_has_no_crop(make_case, check):
    assert not check(make_case(crop=None)).passed
    assert not check(make_case(rounds=())).passed


def test_the_whole_image_is_no_crop(make_case, make_image):
    found = crop_is_tight(make_case(crop=make_image(3, 640, 480), code=""))
    assert (found.passed, found.score) == (False, 1.0)
    assert crop_contains_target(make_case(crop=make_image(3, 640, 480), code="")).passed


def test_the_last_image_that_was_shown_counts(make_case, make_image, store):
    good = make_case().trajectory.rounds[0]
    elsewhere = store.add_pixels(make_image(3, 640, 480).crop((400, 300, 500, 400)))
    missed = Round("", "", Observation("ok", "", images=(elsewhere,)))
    silent = Round("", "", Observation("ok", "42"))
    assert crop_contains_target(make_case(rounds=(missed, good, silent))).passed
    assert not crop_contains_target(make_case(rounds=(good, missed, silent))).passed


def test_a_crop_may_be_off_by_two_pixels(make_case, make_image):
    original = make_image(3, 640, 480)
    assert crop_contains_target(make_case(crop=original.crop((202, 122, 300, 200)), code="")).passed
    assert not crop_contains_target(make_case(crop=original.crop((204, 122, 300, 200)), code="")).passed


CLAMPED = Edit("clamp_box", "crop((-20, 100, 280, 170))", "crop((0, 100, 280, 170))")


@pytest.mark.parametrize(
    ("code", "edits"),
    [
        ("image.crop((-20, 100, 280, 170))", (CLAMPED,)),
        ("box = (-20, 100, 280, 170)\nimage.crop(box)  # wide", (CLAMPED,)),
        ("image.crop((-20, 100, 280, 170))", (CLAMPED, Edit("output_folder", "'/mnt/data/x.png'", "'/tmp/x.png'"))),
        (
            "```python\nimage.crop(box)\n```",
            (Edit("strip_fence", "```python\nimage.crop(box)\n```", "image.crop(box)\n"), CLAMPED),
        ),
        ("a[170:100, x:280]", (Edit("clamp_box", "image[170:100, -20:280]", "image[100:170, 0:280]"),)),
        ("image.crop(box)", (CLAMPED, Edit("clamp_box", "", "# … and 7 more"))),
    ],
)
@pytest.mark.parametrize("only_the_box_tells", [False, True])
def test_the_boxes_are_read_as_the_sandbox_used_them(
    make_case, make_image, store, monkeypatch, code, edits, only_the_box_tells
):
    shown = store.add_pixels(make_image(3, 640, 480).crop((0, 100, 280, 170)))
    if only_the_box_tells:
        monkeypatch.setattr("darkroom.pipelines.vision.crop_localization._search", lambda crop, original: None)
    seen = Observation("ok", "", images=(shown,), edits=edits)
    found = crop_contains_target(make_case(code=code, observation=seen))
    assert found.passed
    assert found.detail.startswith("crop (0, 100, 280, 170)")


# --- the hint


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"thought": "It is at 180 from the left."}, "the thought of round 1 repeats 180"),
        ({"thought": "I crop 180x100."}, "repeats 100, 180"),
        ({"thought": "(180,100,280,170)"}, "repeats 100, 170, 180, 280"),
        ({"thought": "about 180.0 pixels"}, "repeats 180"),
        ({"thought": "x=280px"}, "repeats 280"),
        ({"code": "# the sign is at 170\nimage.crop(box)"}, "a comment of round 1 repeats 170"),
        ({"code": "crop(box)  # at (180,100)"}, "a comment of round 1 repeats 100, 180"),
        ({"code": "# 280\nif x:\nbroken("}, "a comment of round 1 repeats 280"),
        ({"final_thought": "Between 100 and 170 it says STOP."}, "the final thought repeats 100, 170"),
        ({"thought": "1,200 pixels", "hint": {"width": "1200"}}, "repeats 1200"),
        ({"thought": "turned by 12.5 degrees", "hint": {"angle": 12.5}}, "repeats 12.5"),
        ({"thought": "The ground truth is clear."}, "says 'ground truth'"),
        ({"final_thought": "In the ground-truth region"}, "says 'ground-truth'"),
        ({"thought": "According to the file name it is a sign."}, "says 'According to the file name'"),
        ({"thought": "The filename suggests a sign."}, "says 'filename suggests'"),
        ({"thought": "I use the provided bounding box."}, "says 'provided bounding box'"),
        ({"code": "# the region was given\ncrop(box)"}, "says 'region was given'"),
        ({"thought": "According to the hint, left."}, "says 'According to the hint'"),
    ],
)
def test_a_hint_that_shows_is_found_where_it_shows(make_case, said, told):
    found = hint_stays_hidden(make_case(**said))
    assert not found.passed
    assert told in found.detail


@pytest.mark.parametrize(
    "said",
    [
        {"code": "image.crop((180, 100, 280, 170))"},
        {"code": "text = '180'  # crop"},
        {"thought": "There are 2 signs, 3 of them new.", "hint": {"n": "2, 3"}},
        {"thought": "Sign 180 says STOP.", "question": "What does sign 180 say?"},
        {"final_thought": "It says 170.", "choices": ("A. 170", "B. 190")},
        {"thought": "The picture is 640x480.", "hint": {"region": "0, 0, 640, 480"}},
        {"thought": "It is 1800 wide, or 1.180, or 10."},
        {"thought": "The box office is to the left of the door, in a region of grass."},
        {"thought": "180", "hint": {}},
    ],
)
def test_what_anyone_may_know_is_no_leak(make_case, said):
    assert hint_stays_hidden(make_case(**said)).passed


def test_a_number_of_the_answer_is_no_leak(make_case):
    case = make_case(final_thought="It says 280.")
    assert hint_stays_hidden(replace(case, sample=replace(case.sample, answer="280"))).passed


def test_every_round_is_read(make_case):
    seen = make_case().trajectory.rounds[0]
    found = hint_stays_hidden(make_case(rounds=(seen, replace(seen, thought="at 280"))))
    assert "the thought of round 2" in found.detail


def test_boxes_beyond_the_first_do_not_count(make_case):
    boxes = (TruthBox("sign", 200, 120, 260, 150), TruthBox("other", 0, 0, 640, 480))
    assert crop_contains_target(make_case(truth=Truth(boxes=boxes))).passed
