"""Scores of answers: by rule, by likeness, by a judge."""

import asyncio
from dataclasses import replace

import pytest

from darkroom.pipelines.generation.rollout import rollout
from darkroom.pipelines.models.paper_prompts import paper_prompt
from darkroom.pipelines.records import Grader
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.train.evaluation.rollouts import EvaluatedPolicy, names_of, score, task_of
from darkroom.train.evaluation.scorings import anls
from tests.pipelines.scripted import Scripted
from tests.train.evaluation.conftest import played


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


def asked(wording, *, mode="free", **about):
    one = played("a")
    policy = Scripted(lambda turn: "<think>I see it.</think>\n<answer>red</answer>", name="model")
    evaluated = EvaluatedPolicy(policy, wording.protocol if wording else "thyme", mode, wording=wording)
    return evaluated, task_of(replace(one.question, **about), 0, evaluated)


def test_a_papers_prompt_reaches_the_model():
    requests = []
    evaluated, task = asked(paper_prompt("thyme_paper"))
    policy = Scripted(lambda turn: requests.append(turn) or "<think>I see it.</think>\n<answer>red</answer>", name="m")
    done = asyncio.run(
        rollout(task, policy=policy, protocol=evaluated.protocol_of(played("a").question), session=None, max_rounds=1)
    )
    system, user = requests[0].messages
    assert done.answer == "red"
    assert "Reasoning & Image Manipulation" in system.parts[0].text
    assert "User Image Path: image_0.png\n\nUser Image Size: 640x480" in user.parts[-1].text
    assert names_of(task, evaluated) == ("image_0.png",)


def test_a_prompt_makes_another_rollout_and_none_changes_nothing():
    plain, thyme, codev = (
        asked(paper_prompt(name) if name else None)[1] for name in ("", "thyme_paper", "codev_paper")
    )
    assert len({plain.trajectory_id, thyme.trajectory_id, codev.trajectory_id}) == 3
    assert names_of(plain, asked(None)[0]) == ()
    assert "User Image Path" not in str(plain.opening)


@pytest.mark.parametrize(
    ("name", "about"), [("thyme_paper", {"protocol": "pyvision"}), ("figr_paper", {"mode": "forced"})]
)
def test_a_row_in_another_protocol_or_mode_is_not_asked(name, about):
    with pytest.raises(RowError) as error:
        asked(paper_prompt(name), **about)
    assert error.value.reason is Reason.NOT_APPLICABLE
