"""Every kind of answer against wrong answers that look right, and right ones in honest spellings."""

from __future__ import annotations

import time

import pytest

from darkroom.pipelines.verification.grading import grade
from darkroom.pipelines.verification.grading.corruptions import phrased
from darkroom.pipelines.verification.grading.math_worker import maths_process
from darkroom.pipelines.verification.grading.text_match import same_words
from tests.pipelines.verification.grading.cases import KINDS, Said, said

MIN_WRONG, MIN_RIGHT = 40, 20


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """The process that compares expressions is there: its start is not what a call costs."""
    maths_process.compare("x", "y")


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_answer_is_never_accepted_and_soon_refused(kind: str):
    for one in said(kind, "wrong"):
        before = time.process_time()
        assert not grade(*one).right, one
        assert time.process_time() - before < 1, one


@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_spelling_is_accepted(kind: str):
    assert [one for group in ("right", "also_right") for one in said(kind, group) if not grade(*one).right] == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_honest_and_refused_all_the_same_is_known(kind: str):
    assert [one for group in ("refused", "asked") for one in said(kind, group) if grade(*one).right] == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_honest_spelling_survives_a_denial_a_hedge_or_a_disguise(kind: str):
    for one in said(kind, "right")[::3]:
        for corruption in phrased(one.given.strip(), "zanzibar"):
            if not same_words(corruption.text, one.sample.answer) and corruption.text.casefold() not in _texts(one):
                assert not grade(corruption.text, one.sample, one.grader).right, corruption


def _texts(one: Said) -> set[str]:
    """The right choice in words, which may be what else would be wrong: "All of the above"."""
    return {choice[3:].casefold() for choice in one.sample.choices if choice.startswith(one.sample.answer)}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_enough_cases(kind: str):
    assert len(said(kind, "wrong")) >= MIN_WRONG
    assert len(said(kind, "right") + said(kind, "asked")) >= MIN_RIGHT
