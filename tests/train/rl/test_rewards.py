"""Each reward against cases that were computed by hand from its paper."""

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.records import Grader, Sample, Truth
from darkroom.train.rl.rewards import (
    adaptive_rollout,
    alignment,
    consistency_penalty,
    correctness,
    executed_share,
    figr,
    instruction_following,
    necessity,
    necessity_rollout,
    pyvision,
    tapo,
    thyme,
    thyme_code,
    thyme_result,
)

UNIT = st.floats(0, 1)


@pytest.mark.parametrize(
    ("result", "consistency", "form", "reward"),
    [(1, 1, 1, 2.0), (1, 0, 1, 1.5), (1, 1, 0, 1.5), (1, 0, 0, 1.0), (0, 1, 1, 0.5), (0, 1, 0, 0.0), (1, 0.5, 1, 1.75)],
)
def test_the_reward_is_the_formula_of_thyme(result, consistency, form, reward):
    assert thyme(result, consistency, form) == reward


def test_consistency_earns_nothing_for_a_wrong_answer():
    assert thyme(0, 1, 1) == thyme(0, 0, 1)


@pytest.mark.parametrize(("result", "executed", "form", "reward"), [(1, 1, 1, 2.0), (1, 0.5, 1, 1.75), (0, 1, 1, 0.5)])
def test_the_ablations_put_another_reward_in_the_place_of_consistency(result, executed, form, reward):
    assert thyme_code(result, executed, form) == thyme(result, executed, form) == reward


def test_thymes_code_weighs_its_code_reward_by_a_tenth():
    assert thyme_code(1, 1, 1, variant="code") == pytest.approx(1.6)
    assert thyme_code(1, 0.5, 0, variant="code") == pytest.approx(1.05)


@pytest.mark.parametrize(("correct", "paper", "code"), [(True, 1.0, 1.0), (False, 0.0, -1.0), (None, 0.0, 0.0)])
def test_thymes_code_punishes_a_wrong_answer_and_not_a_missing_one(correct, paper, code):
    assert (thyme_result(correct), thyme_result(correct, variant="code")) == (paper, code)


def test_a_result_below_nothing_is_not_made_worse_by_consistency():
    assert thyme(-1, 1, 1) == thyme(-1, 0, 1) == -0.5


@pytest.mark.parametrize(("n_ok", "n", "share"), [(0, 0, 0.0), (0, 2, 0.0), (1, 4, 0.25), (3, 3, 1.0)])
def test_the_code_reward_is_the_share_of_programs_that_ran(n_ok, n, share):
    assert executed_share(n_ok, n) == share


@pytest.mark.parametrize(
    ("correct", "n_calls", "reward"), [(True, 0, 1.0), (True, 1, 1.1), (True, 4, 1.4), (False, 0, 0.0), (False, 4, 0.0)]
)
def test_pyvision_pays_a_tenth_for_every_call_of_a_right_rollout(correct, n_calls, reward):
    assert pyvision(correct, n_calls) == pytest.approx(reward)


def test_only_pyvisions_code_pays_for_a_call_that_failed():
    assert pyvision(True, 3, n_failed=1) == pytest.approx(1.2)
    assert pyvision(True, 3, n_failed=1, variant="code") == pytest.approx(1.3)


@pytest.mark.parametrize(
    ("right", "scores", "reward"),
    [
        (1.0, (), 1.0),
        (1.0, (1.0, 0.5, 0.0), 1.25),
        (1.0, (1.0,), 1.5),
        (0.0, (1.0, 1.0), 0.5),
        (0.0, (-0.5, 1.0), 0.125),
        (1.0, (-0.5,), 0.75),
    ],
)
def test_tapo_adds_the_mean_of_the_tool_scores(right, scores, reward):
    assert tapo(right, scores, weight_accuracy=1.0, weight_tool=0.5) == pytest.approx(reward)


@pytest.mark.parametrize(("weight_accuracy", "weight_tool"), [(0.5, 0.5), (0.4, 0.6), (0.5, -0.5), (0.0, 0.0)])
def test_tapo_wants_the_answer_to_dominate(weight_accuracy, weight_tool):
    with pytest.raises(ValueError, match="so that the answer dominates"):
        tapo(1.0, (1.0,), weight_accuracy=weight_accuracy, weight_tool=weight_tool)


def test_tapo_takes_the_format_of_figure_9():
    assert tapo(1.0, (1.0,), weight_accuracy=0.8, weight_tool=0.4, format=0.3) == pytest.approx(1.5)


@given(st.lists(UNIT, max_size=6), st.lists(UNIT, max_size=6), st.floats(0.01, 1))
def test_no_tool_score_outweighs_a_right_answer(some, others, share):
    weights = {"weight_accuracy": 1.0, "weight_tool": 0.99 * share}
    assert tapo(1.0, some, **weights) > tapo(0.0, others, **weights)


@pytest.mark.parametrize(
    ("used_tool", "mode", "reward"),
    [(True, "forced", 1.2), (False, "forced", -1.0), (False, "forbidden", 1.2), (True, "forbidden", -1.0)],
)
def test_a_rollout_is_rewarded_for_doing_as_it_was_told(used_tool, mode, reward):
    assert instruction_following(used_tool, mode) == reward


def test_a_free_rollout_was_told_nothing():
    with pytest.raises(ValueError, match="found 'free'"):
        instruction_following(True, "free")


@pytest.mark.parametrize(("forced", "forbidden", "needed"), [(0.75, 0.5, True), (0.5, 0.5, False), (0.25, 0.5, False)])
def test_a_tool_is_needed_where_it_answers_better(forced, forbidden, needed):
    assert necessity(forced, forbidden) is needed


@pytest.mark.parametrize(
    ("correct", "used_tool", "necessary", "reward"),
    [
        (True, True, True, 1.6),
        (True, False, False, 1.6),
        (True, True, False, 1.2),
        (True, False, True, 1.2),
        (False, True, True, -0.8),
        (False, False, False, -0.8),
        (False, True, False, -1.0),
        (False, False, True, -1.0),
    ],
)
def test_alignment_is_table_a2(correct, used_tool, necessary, reward):
    assert alignment(correct, used_tool, necessary) == reward


@pytest.mark.parametrize("constants", [{"b2": 1.0}, {"b3": 0.0}, {"c3": 0.5}, {"c2": 0.0}])
def test_alignment_wants_the_papers_order_of_its_constants(constants):
    with pytest.raises(ValueError, match="b2 > b3 > 0 and c3 > c2 > 0"):
        alignment(True, True, True, **constants)


@pytest.mark.parametrize(
    ("flags", "penalty"),
    [
        ((), 0.0),
        ([True] * 8, 0.0),
        ([False] * 8, 0.0),
        ([True] * 4 + [False] * 4, -0.025),
        ([True, False, False], -2 / 90),
    ],
)
def test_the_penalty_is_the_variance_of_using_the_tool(flags, penalty):
    assert consistency_penalty(flags) == pytest.approx(penalty)


def test_the_penalty_of_agreement_is_no_negative_zero():
    assert str(consistency_penalty([True, True])) == "0.0"


@pytest.mark.parametrize(
    ("right", "used_tool", "mode", "reward"),
    [(1, True, "forced", 1.096), (0, True, "forced", 0.096), (1, True, "forbidden", 0.92), (0, False, "forced", -0.08)],
)
def test_a_necessity_rollout_gets_equation_8(right, used_tool, mode, reward):
    assert necessity_rollout(right, instruction_following(used_tool, mode)) == pytest.approx(reward)


def test_an_adaptive_rollout_gets_equation_9():
    penalty = consistency_penalty([True] * 6 + [False] * 2)  # 0.1 · 3/16
    assert adaptive_rollout(1, alignment(True, True, True), penalty) == pytest.approx(1 + 0.08 - 0.01875)
    assert adaptive_rollout(0, alignment(False, False, True), penalty) == pytest.approx(0 - 0.05 - 0.01875)


@pytest.mark.parametrize(
    ("correct", "well", "suitable", "executed", "paper", "code"),
    [
        (True, True, True, True, 3.0, 2.0),
        (True, True, False, True, 2.2, 1.04),
        (True, True, True, False, 2.0, 0.8),
        (True, True, False, False, 2.0, 0.8),
        (True, False, True, True, 2.0, 1.8),
        (False, True, True, True, 1.0, 0.0),
        (False, False, True, True, 0.0, -0.2),
        (False, False, False, False, 0.0, -0.2),
        (True, True, None, True, 2.2, 2.0),
    ],
)
def test_figr_is_its_paper_and_its_code(correct, well, suitable, executed, paper, code):
    given = {"suitable": suitable, "executed": executed}
    assert figr(correct, well, **given) == pytest.approx(paper)
    assert figr(correct, well, **given, variant="code") == pytest.approx(code)


@pytest.mark.parametrize(
    ("answer", "gold", "choices", "right"),
    [
        ("red", "red", (), 1.0),
        ("Red.", "red", (), 1.0),
        ("51.0", "51", (), 1.0),
        ("blue", "red", (), 0.0),
        (None, "red", (), 0.0),
        ("B", "B", ("A. red", "B. blue"), 1.0),
        ("blue", "B", ("A. red", "B. blue"), 1.0),
        ("A", "B", ("A. red", "B. blue"), 0.0),
    ],
)
def test_an_answer_is_right_when_it_says_the_gold_answer(answer, gold, choices, right):
    sample = Sample("s", "test", "1", "", (), "Which?", choices, gold, Truth(), "colour")
    assert correctness(answer, sample) == right


@pytest.mark.parametrize(
    ("answer", "grader", "right"),
    [
        ("12.1 km", Grader("number", tolerance=0.05, unit="km"), 1.0),
        ("13 km", Grader("number", tolerance=0.05, unit="km"), 0.0),
        ("12", None, 1.0),
        (None, None, 0.0),
    ],
)
def test_an_answer_is_graded_as_its_sample_says(answer, grader, right):
    sample = Sample("s", "test", "1", "", (), "How far?", (), "12", Truth(), "number")
    assert correctness(answer, sample, grader) == right
