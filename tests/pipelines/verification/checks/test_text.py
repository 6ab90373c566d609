"""Degenerate text fails every family: circles by the trainer's rule, and filler by its length."""

from __future__ import annotations

import random
import time

import pytest

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.records import Observation, Round
from darkroom.pipelines.verification.checks import EVERY_FAMILY, Flaw
from darkroom.pipelines.verification.checks.rounds import MAX_CHARS, has_a_thought, not_repetitive, not_too_long

SENTENCE = "I look at the sign again to be sure of it. "
WORDS = (
    "sign",
    "crop",
    "image",
    "letter",
    "edge",
    "colour",
    "corner",
    "shape",
    "left",
    "right",
    "above",
    "below",
    "line",
)


def rambling(n_chars: int, seed: int = 0) -> str:
    """Words in random order: no passage comes twice."""
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) for _ in range(n_chars))[:n_chars]


def row(make_case, where: str, text: str):
    shown = make_case().trajectory.rounds[0].observation
    thought, code = ("Look closer.", "image.show()")
    texts = {"thought": thought, "code": code, where: text}
    said = {"final_thought": text} if where == "final_thought" else {}
    return make_case(rounds=(Round(texts["thought"], texts["code"], shown),), **said)


@pytest.mark.parametrize("where", ["thought", "code", "final_thought"])
@pytest.mark.parametrize(
    "text",
    [
        SENTENCE * 400,
        SENTENCE * 20,
        "The sign stands on the left, so I crop it there and enlarge the crop. " + SENTENCE * 30,
        "no " * 1400,
        "\n".join(f"# step {n}: look at the sign again to be sure of it, then go on" for n in range(60)),
        "再看一遍这个标志，确认上面写的是什么字。" * 60,
    ],
    ids=["400 times", "20 times", "after a good start", "one word", "numbered", "Chinese"],
)
def test_going_round_in_circles_fails_wherever_it_stands(make_case, where, text):
    found = not_repetitive(row(make_case, where, text))
    assert (found.passed, found.reason) == (False, Flaw.REPETITIVE)
    assert where.replace("_", " ") in found.detail


def test_a_circle_in_one_thought_is_not_made_good_by_much_other_text(make_case):
    shown = make_case().trajectory.rounds[0].observation
    rounds = (Round(SENTENCE * 20, "", shown), Round(rambling(6000), "", shown))
    assert not_repetitive(make_case(rounds=rounds)).reason == Flaw.REPETITIVE


def test_the_same_turn_over_many_rounds_is_a_circle(make_case):
    shown = make_case().trajectory.rounds[0].observation
    turn = Round("The sign is small, so I look closer once more.", "image.crop((1, 2, 3, 4)).save(path)", shown)
    assert not_repetitive(make_case(rounds=(turn,) * 12)).reason == Flaw.REPETITIVE


@pytest.mark.parametrize("text", [rambling(900), rambling(5000), "x = 1\n" * 20, ""])
def test_other_text_passes(make_case, text):
    case = row(make_case, "thought", text)
    assert not_repetitive(case).passed
    assert not_too_long(case).passed


def test_what_the_sandbox_printed_is_not_the_policys_text(make_case):
    printed = Round("I count.", "count()", Observation("ok", SENTENCE * 400))
    assert all(check(make_case(rounds=(printed,))).passed for check in EVERY_FAMILY)


def test_a_program_without_a_thought_is_found_and_an_answer_after_it_may_have_none(make_case):
    seen = Observation("ok", "7")
    thought, empty = Round("I count.", "count()", seen), Round(" \n", "count()", seen)
    assert has_a_thought(make_case(rounds=(thought,), final_thought="")).passed
    found = has_a_thought(make_case(rounds=(thought, empty)))
    assert (found.reason, found.score) == (Flaw.NO_THOUGHT, 0.5)
    assert found.detail == "no thought before the program of round 2"
    assert has_a_thought(make_case(rounds=(), final_thought="")).reason == Flaw.NO_THOUGHT
    assert has_a_thought(make_case(rounds=(), final_thought="It is red.")).passed


@pytest.mark.parametrize("where", ["thought", "code", "final_thought"])
def test_filler_is_too_long_though_it_never_repeats_itself(make_case, where):
    case = row(make_case, where, rambling(38_000))
    found = not_too_long(case)
    assert (found.passed, found.reason) == (False, Flaw.TOO_LONG)
    assert found.score > 38_000
    assert not_repetitive(case).passed


def test_many_texts_below_the_limit_are_too_long_together(make_case):
    shown = make_case().trajectory.rounds[0].observation
    rounds = tuple(Round(rambling(MAX_CHARS // 4, seed), "", shown) for seed in range(5))
    assert not_too_long(make_case(rounds=rounds)).reason == Flaw.TOO_LONG


def test_a_megabyte_costs_no_more_than_what_is_looked_at(make_case):
    began = time.process_time()
    not_repetitive(row(make_case, "thought", rambling(1_000_000)))
    assert time.process_time() - began < 2


@pytest.mark.parametrize("family", sorted(load_recipes()))
def test_every_family_has_both_checks(family):
    assert set(EVERY_FAMILY) <= set(load_recipes()[family].checks)


def test_what_repeats_itself_is_shown_from_the_middle(make_case):
    text = rambling(1000) + "over and over " * 300
    detail = not_repetitive(row(make_case, "thought", text)).detail
    start = (len(text) - 80) // 2
    assert repr(text[start : start + 80]) in detail
