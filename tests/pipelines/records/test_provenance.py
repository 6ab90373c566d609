"""Who wrote, judged or measured something, in words; what a rollout cost and whether it passed."""

from dataclasses import replace

import pytest

from darkroom.pipelines.records import Check, ImageRef, PoolImage, Usage
from darkroom.pipelines.records.annotation import asked, measured_on, writer_in_words

EMBEDDED = "an embedded rule (measured; no model)"
SIMULATED = "simulated by the embedded oracle (drawn by a script; no model was measured)"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "not measured"),
        (["qwen"], "measured on qwen"),
        (["qwen", "gpt", "qwen"], "measured on gpt, qwen"),
        (["oracle"], SIMULATED),
        (["embedded"], EMBEDDED),
        (["qwen", "oracle"], f"measured on qwen; {SIMULATED}"),
        (["oracle", "embedded"], f"{EMBEDDED}; {SIMULATED}"),
    ],
)
def test_a_measurement_names_its_models_and_is_never_a_stand_ins(names, words):
    assert measured_on(names) == words


def test_a_stand_in_is_called_one_and_a_model_by_its_name():
    oracle = "the embedded oracle (a script that knows the truth; no model)"
    assert (asked("qwen"), asked("oracle"), asked("embedded")) == ("qwen", oracle, EMBEDDED)
    assert (writer_in_words("openai", "qwen"), writer_in_words("oracle", "")) == ("openai (qwen)", oracle)


def test_people_see_the_smaller_view_of_an_image_that_has_one():
    whole, view = (ImageRef(letter * 64, 9, 9, "RGB", "PNG") for letter in "ab")
    image = PoolImage(whole, "source", "1", "CC0")
    assert (image.shown, replace(image, view=view).shown) == (whole, view)


def test_usage_adds_subtracts_and_scales_each_of_its_parts():
    usage = Usage(7, 5, 3, 0.75)
    assert usage + Usage(1, 2, 3, 0.25) == Usage(8, 7, 6, 1.0)
    assert usage - Usage(1, 2, 3, 0.25) == Usage(6, 3, 0, 0.5)
    assert usage.times(0.5) == Usage(4, 2, 2, 0.375), "halves are rounded to even numbers"
    assert usage.times(3) == Usage(21, 15, 9, 2.25)
    assert usage.n_tokens == 8
    assert Usage() == Usage(0, 0, 0, 0.0)


def test_one_failed_check_of_several_fails_the_trajectory(make_case):
    trajectory = make_case().trajectory
    for verdicts, passed in (((True, True), True), ((True, False), False), ((False, True), False), ((), False)):
        checks = tuple(Check(str(n), verdict) for n, verdict in enumerate(verdicts))
        assert replace(trajectory, checks=checks).passed is passed


def test_a_check_was_version_one_and_of_no_trials_unless_it_says_otherwise():
    assert Check("executes", True) == Check("executes", True, None, "", "", 1, 0)


def test_images_are_shown_round_after_round(make_case, make_image, store):
    case = make_case()
    (first,) = case.trajectory.rounds
    more = tuple(store.add_pixels(make_image(seed)) for seed in (5, 6))
    second = replace(first, observation=replace(first.observation, images=more))
    row = replace(case.trajectory, rounds=(first, second))
    assert row.shown_images == (*row.images, *first.observation.images, *more)
    assert replace(case, trajectory=row).observed == (*first.observation.images, *more)


def test_texts_are_read_round_by_round_and_the_final_thought_last(make_case):
    case = make_case(thought="look", code="crop()", final_thought="done")
    (turn,) = case.trajectory.rounds
    rounds = (turn, replace(turn, thought="again", code="zoom()"))
    case = replace(case, trajectory=replace(case.trajectory, rounds=rounds))
    assert list(case.texts("the code", str.upper)) == [
        ("the thought of round 1", "look"),
        ("the code of round 1", "CROP()"),
        ("the thought of round 2", "again"),
        ("the code of round 2", "ZOOM()"),
        ("the final thought", "done"),
    ]
