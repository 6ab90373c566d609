"""Scores of answers: by rule, by likeness, by a judge."""

import asyncio
from dataclasses import replace

import pytest

from pipelines.records import Grader
from pipelines.records.reject_reasons import Reason, RowError
from tests.pipelines.scripted import Scripted
from tests.train.evaluation.conftest import played
from train.evaluation.rollouts import score
from train.evaluation.scorings import anls


def scored(answer, *, judge=None, error=None, **about):
    one = played("a", answer=answer)
    question = replace(one.question, **about)
    made = replace(one.rollout, error=RowError(error, "why") if error else None)
    return asyncio.run(score(made, question, judge))


@pytest.mark.parametrize(
    ("given", "accepted", "expected"),
    [
        ("22", ("twenty two", "22"), 1.0),
        ("Twenty  Two", ("twenty two",), 1.0),
        ("stop", ("shop",), 0.75),
        ("abcd", ("abxy",), 0.5),
        ("abc", ("axy",), 0.0),  # a third alike: below one half it counts nothing
        ("", ("22",), 0.0),
    ],
)
def test_anls_is_the_likeness_to_the_nearest_accepted_answer(given, accepted, expected):
    assert anls(given, accepted) == pytest.approx(expected)


def test_an_answer_by_likeness_is_right_where_it_counts_at_all():
    found = scored("stop", scoring="anls", accepted=("shop", "bakery"))
    assert (found.right, found.value) == (True, 0.75)
    assert not scored("car", scoring="anls", accepted=("shop",)).right


def test_an_answer_is_scored_by_its_grader():
    one = played("a", answer="3.1")
    number = replace(one.question, sample=replace(one.question.sample, answer="3"), grader=Grader("number", 0.05))
    assert asyncio.run(score(one.rollout, number)).right
    assert not asyncio.run(score(one.rollout, replace(number, grader=Grader("number")))).right


def test_free_text_is_read_by_the_judge_where_there_is_one():
    judge = Scripted(lambda turn: '{"verdict": true}', name="judge")
    about = {"grader": Grader("judged")}
    assert not scored("a crimson tone", **about).right
    assert scored("a crimson tone", judge=judge, **about).right
    assert len(judge.turns) == 1


def test_no_answer_is_wrong_and_says_why():
    found = scored("", error=Reason.MALFORMED_TURN)
    assert (found.right, found.value) == (False, 0.0)
    assert "malformed_turn" in found.detail
