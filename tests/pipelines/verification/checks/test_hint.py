"""Thoughts, comments and names that leak a hint are all found; those that do not are left alone."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.pipelines.verification.checks import hint_stays_hidden
from darkroom.pipelines.verification.checks.hint import (
    LEAK_WORDS,
    PHRASES,
    hint_phrase,
    phrases,
    spelled,
    unseen_phrase,
)
from measurements.leaks import PARTS, flagged, read_thoughts
from tests.matrices import every_nth

CASES = json.loads((Path(__file__).parent / "cases" / "hints.json").read_text())
LEAKS, CLEAN = CASES["leaks"], CASES["clean"]


def _said(case: dict) -> dict:
    return {name: value for name, value in case.items() if name not in ("kind", "flaw")}


def test_there_are_enough_of_both():
    assert len(LEAKS) >= 60
    assert len(CLEAN) >= 60


@pytest.mark.parametrize("case", LEAKS, ids=lambda case: case["kind"])
def test_a_leak_is_found_for_its_reason(make_case, case):
    found = hint_stays_hidden(make_case(**_said(case)))
    assert (found.passed, found.reason) == (False, case["flaw"]), (case, found.detail)


@pytest.mark.parametrize("case", CLEAN, ids=lambda case: case["kind"])
def test_what_does_not_leak_is_no_alarm(make_case, case):
    found = hint_stays_hidden(make_case(**_said(case)))
    assert found.passed, (case, found.detail)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (10, "ten"),
        (47, "forty-seven"),
        (180, "one hundred eighty"),
        (2013, "two thousand thirteen"),
        (300, "three hundred"),
    ],
)
def test_numbers_are_spelled_as_people_write_them(number, words):
    assert spelled(number) == words


@pytest.mark.parametrize("number", [3, 12.5, 10_000, -20])
def test_what_nobody_writes_out_is_not_spelled(number):
    assert spelled(number) is None


def test_four_in_five_leaks_are_found_among_those_that_the_filter_was_not_tuned_on():
    leaks = [thought for thought in read_thoughts("leaks") if thought.part == PARTS[1]]
    assert len(read_thoughts("leaks")) >= 300
    assert (flagged(leaks).value or 0) >= 0.8


@pytest.mark.parametrize("name", ["new", "after"])
@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "zh"])
def test_leaks_of_five_languages_are_found_and_clean_thoughts_are_not(name, language):
    leaks = [thought for thought in read_thoughts(f"leaks_{name}") if thought.method == language]
    clean = [thought for thought in read_thoughts(f"clean_thoughts_{name}") if thought.method == language]
    assert (flagged(leaks).value or 0) >= 0.8
    assert flagged(clean).n == 0


@pytest.mark.parametrize(
    ("name", "n_found"),
    [("a", 47), ("b", 50), ("c", 40), ("d", 40), ("e", 48), ("f", 47), ("g", 46), ("h", 140), ("j", 89)],
)
def test_leaks_in_other_voices_are_found_as_the_page_says(name, n_found):
    """The model was trained on all but ``j``: ``tests.measurements.leak_model`` leaves each batch out."""
    leaks, clean = (flagged(read_thoughts(f"{kind}_voices_{name}")) for kind in ("leaks", "clean_thoughts"))
    assert leaks.n == n_found
    assert clean.n == (name == "j")


MAY_BE_SAID = [
    "When I zoom in, the TV will be larger.",
    "After zooming in, I can compare the value of 2019 and 2020.",
    "Although the labels cannot be read, the chart has bars for 2019 and 2020.",
    "I know that the table covers 2019 and 2020.",
    "Nach dem Vergrößern kann ich 2019 und 2020 vergleichen.",
    "El texto está escrito mal a propósito.",
    "身份证明上有一个名字。",
    "放大后可以比较2019年和2020年。",
    "The view serves to tell whether B or C is right.",
    "Ohne genauer gesehen zu haben, kann ich 44 nicht ausschließen.",
    "I am not sure that it says STOP.",
    "The bag was handed to me by the man.",
]
"""Before the first look; the model learns from them."""


@pytest.mark.parametrize("thought", MAY_BE_SAID)
def test_numbers_and_names_of_the_question_may_be_said_before_the_look(make_case, thought):
    assert hint_stays_hidden(make_case(thought=thought)).passed


@pytest.mark.parametrize("part", PARTS[:2])
def test_one_clean_thought_in_fifty_at_most_is_a_false_alarm(part):
    clean = [thought for thought in read_thoughts("clean_thoughts") if thought.part == part]
    assert len(clean) >= 250
    assert (flagged(clean).value or 0) <= 0.02


@pytest.mark.parametrize(
    "thought",
    [
        "I already know the text is STOP.",
        "According to the answer key, it says STOP.",
        "I crop the target box from the metadata.",
        "The user already gave the region.",
    ],
)
def test_paraphrases_that_strangers_wrote_are_found(make_case, thought):
    found = hint_stays_hidden(make_case(thought=thought))
    assert (found.passed, found.reason) == (False, "hint_mentioned")


@pytest.mark.parametrize("thought", ["I already know that it is on the left.", "The sign says exactly x = 1237."])
def test_what_one_look_has_shown_may_be_known_at_the_next(make_case, thought):
    (first,) = make_case().trajectory.rounds
    later = replace(first, thought=thought)
    assert hint_stays_hidden(make_case(rounds=(first, later))).passed
    assert not hint_stays_hidden(make_case(rounds=(later, first))).passed


@pytest.mark.parametrize("text", ["The user provided an image and four options.", "We are given a triangle."])
def test_what_everybody_is_given_is_no_leak(make_case, text):
    assert hint_stays_hidden(make_case(thought=text)).passed


@pytest.mark.parametrize(
    "unit",
    every_nth(
        ["the box of the ", "cannot be read but ", "I know ", "exactly ", "the crop will ", "(123, ", "as the "], 4
    ),
)
def test_a_long_thought_costs_no_more_than_its_length(unit):
    """Four times the text, in far less than sixteen times the time."""

    def seconds(n_chars):
        text = unit * (n_chars // len(unit))
        started = time.process_time()
        for way in PHRASES:
            phrases(way).search(text)
        return time.process_time() - started

    short, long = (min(seconds(n_chars) for _ in range(2)) for n_chars in (2_500, 10_000))
    assert long < 9 * short + 0.01


def test_a_drawing_yet_to_be_made_may_make_plain_what_it_shows():
    assert unseen_phrase("The meetings show when both are drawn. A figure will make this plain, so I make one.") is None
    assert unseen_phrase("The number is 206 451 7000. Cropping the area will make this evident.")


def test_words_that_no_phrase_has_are_weighed_and_named():
    text = "I look around. The briefing pins the gauge to the left-hand bank of dials."
    assert hint_phrase(text, by_model=False) is None
    found = hint_phrase(text)
    assert found is not None
    assert found.startswith("The briefing pins the gauge")
    assert "(document, " in found


def test_no_template_of_the_demo_is_taken_for_a_leak():
    """What its oracle may say, filled in: the model's bound lies above all of it."""
    leak_model = pytest.importorskip("tests.measurements.leak_model")
    said = dict.fromkeys(example.text for example in leak_model.of_the_demo())
    assert len(said) > 1_000
    assert [text for text in [*said][::5] if LEAK_WORDS.evidence(text, "anywhere")] == []


def test_a_long_text_is_weighed_in_parts_of_bounded_length():
    features = [len(LEAK_WORDS.features("I was given the box by the user " * n)) for n in (20, 2000)]
    assert features[0] == features[1]
