"""CodeV §4.3: which rounds a judge is asked about, and what a group without judge and right answers learns."""

import asyncio
from dataclasses import replace

import pytest

from darkroom.pipelines.storage.images import ImageStore
from darkroom.train.rl.judging.code_rules import measured_lines
from darkroom.train.rl.judging.judges import Judges
from darkroom.train.rl.methods import named_method
from darkroom.train.rl.rollouts.scoring import scored
from tests.pipelines.scripted import Scripted
from tests.train.outcomes import QUESTION_IMAGE, looked, outcome

CLEAR = '{"reason": "so", "match": "clear"}'
MEASURED = "box = find(image)\nprint('left', box.left)"
WHOLE = looked(code="image.save('again.png')", images=(QUESTION_IMAGE,))


def asked(given, visual_search):
    return replace(given, question=replace(given.question, visual_search=visual_search))


def said(text, code=MEASURED):
    """A round that printed."""
    turn = looked(code=code, images=())
    return replace(turn, observation=replace(turn.observation, text=text))


@pytest.fixture
def rewards(tmp_path):
    """The rewards of right rollouts, and how often the judge, to whom all is clear, was asked."""

    def of(*group, **options):
        policy = Scripted(lambda turn: CLEAR)
        judges = Judges(policy, ImageStore(tmp_path / "images"))
        scores = asyncio.run(named_method("codev", options).score(group, judges))
        return [score.reward for score in scores], len(policy.turns)

    return of


def test_what_code_shows_is_evidence_where_the_question_is_visual_search(rewards):
    found = [asked(outcome("red", looked()), known) for known in (True, None, False)]
    assert rewards(*found) == ([1.5, 1.5, 1.0], 2)
    assert rewards(found[2], only_visual_search=False) == ([1.5], 1)


def test_elsewhere_redlines_count_all_the_same(rewards):
    assert rewards(asked(outcome("red", WHOLE), False)) == ([0.75], 0)


def test_what_code_measured_is_evidence(rewards):
    measured, written = outcome("red", said("left 412")), outcome("red", said("It is red.", "print('It is red.')"))
    assert rewards(measured, written) == ([1.5, 1.0], 1)
    assert rewards(measured, text_evidence=False) == ([1.0], 0)


def test_of_a_round_that_failed_no_judge_is_asked(rewards):
    assert rewards(outcome("red", looked("error", error="NameError: x")))[1] == 0


@pytest.mark.parametrize(
    ("code", "output", "kept"),
    [
        ("print(image.size)", "(640, 480)", "(640, 480)"),
        ("print('The sign is red')", "The sign is red", ""),
        ("print('The sign', 'is red')", "The sign is red", ""),
        ("print(f'mean {x:.1f}')", "mean 12.5", "mean 12.5"),
        ("print('mean:', x)\nprint('so it is red')", "mean: 7\nso it is red", "mean: 7"),
        ("print(42)", "42", ""),
        ("print(", "12", ""),
        ("x", "", ""),
    ],
)
def test_lines_that_the_code_itself_holds_are_not_measured(code, output, kept):
    assert measured_lines(code, output) == kept


def test_long_output_and_code_take_linear_time():
    words = " ".join(f"w{n}" for n in range(200_000))
    assert measured_lines(f"x = {words!r}\nprint(x)", words) == ""


WRONG_GROUP = [outcome("blue"), outcome("blue", WHOLE), *[outcome("blue")] * 6]


def test_without_a_judge_a_group_without_a_right_answer_teaches_nothing():
    """Redlines alone would train away the one rollout that wrote code (-0.22 against +0.03)."""
    found = asyncio.run(scored(WRONG_GROUP, named_method("codev"), Judges(), size=8))
    advantages = found.with_advantages(8, scale="none").advantages
    assert advantages == (0.0,) * 8
    assert found.parts[1]["redlines"] == 1.0  # logged all the same


def test_without_a_judge_redlines_cost_where_an_answer_is_right():
    found = asyncio.run(scored([outcome("red"), *WRONG_GROUP[1:]], named_method("codev"), Judges(), size=8))
    assert found.rewards[:3] == (1.0, -0.25, 0.0)


def test_with_a_judge_a_redline_costs_in_every_group(tmp_path):
    judges = Judges(Scripted(lambda turn: CLEAR), ImageStore(tmp_path))
    shown = outcome("blue", looked())
    found = asyncio.run(scored([shown, *WRONG_GROUP[1:]], named_method("codev"), judges, size=8))
    assert found.rewards[:3] == (0.5, -0.25, 0.0)
