"""Figures against cases that were counted by hand."""

import math
from dataclasses import replace

import pytest

from darkroom.pipelines.records import ImageRef, Usage
from darkroom.pipelines.vision.visibility import QWEN2_5_VL
from darkroom.train.evaluation import metrics
from darkroom.train.evaluation.code_analysis import Tool
from darkroom.train.evaluation.metrics import bootstrap, estimate, pass_at_k, wilson
from tests.train.evaluation.conftest import looked, played

# --- intervals


def test_wilson_is_as_computed_by_hand():
    found = wilson(8, 10)  # centre (0.8 + 1.92073/10) / 1.384146, half 0.2267
    assert (found.mean, round(found.low, 4), round(found.high, 4)) == (0.8, 0.4902, 0.9433)


def test_wilson_does_not_vanish_at_the_ends():
    assert wilson(0, 10).high == pytest.approx(0.2775, abs=1e-4)
    assert wilson(10, 10).low == pytest.approx(0.7225, abs=1e-4)
    assert wilson(0, 10).low == 0.0


def test_nothing_has_no_interval():
    assert wilson(0, 0).method == bootstrap([]).method == "none"


def test_single_answers_have_wilsons_interval_and_groups_the_bootstraps():
    assert estimate([[1.0], [0.0]]).method == "wilson"
    assert estimate([[1.0, 0.0], [0.0, 0.0]]).method == "bootstrap"
    assert estimate([[0.7], [0.2]]).method == "bootstrap"


def test_groups_that_are_all_wrong_are_not_certain_to_be():
    found = estimate([[0.0, 0.0]] * 40)
    assert (found.mean, found.method, found.n) == (0.0, "wilson", 40)
    assert found.high == wilson(0, 40).high > 0.05


def test_the_bootstrap_draws_groups_and_not_values():
    """Ten groups of a hundred equal answers know as much as ten answers."""
    groups = [[float(number < 5)] * 100 for number in range(10)]
    found = bootstrap(groups)
    assert found.n == 10
    assert found.mean == 0.5
    assert found.high - found.low > 0.4
    assert bootstrap([[value] for group in groups for value in group]).high - 0.5 < 0.05


def test_the_bootstrap_says_the_same_again():
    groups = [[0.1, 0.9], [0.4], [1.0, 1.0]]
    assert bootstrap(groups) == bootstrap(groups)


# --- pass@k


@pytest.mark.parametrize(
    ("n", "n_right", "k", "expected"),
    [
        (5, 2, 1, 0.4),
        (5, 2, 2, 1 - 3 / 10),  # C(3, 2) / C(5, 2)
        (5, 2, 3, 1 - 1 / 10),
        (5, 2, 4, 1.0),
        (64, 0, 32, 0.0),
        (64, 64, 1, 1.0),
        (10, 1, 10, 1.0),
    ],
)
def test_pass_at_k_is_the_unbiased_estimator(n, n_right, k, expected):
    assert pass_at_k(n, n_right, k) == pytest.approx(expected)


def test_pass_at_more_than_there_are_is_refused():
    with pytest.raises(ValueError, match="pass@4 needs at least 4 answers"):
        pass_at_k(3, 1, 4)


# --- accuracy


def test_accuracy_is_the_share_of_right_rollouts_and_broken_ones_are_wrong():
    found = metrics.accuracy([played("a"), played("b", right=False), played("c", right=False, error="malformed_turn")])
    assert found.right.mean == pytest.approx(1 / 3)
    assert (found.n_questions, found.n_rollouts) == (3, 3)


def test_avg_and_pass_at_k_of_two_questions():
    rollouts = [played("a", number=n, right=n < 1) for n in range(4)] + [
        played("b", number=n, right=n < 2) for n in range(4)
    ]
    found = metrics.accuracy(rollouts)
    assert found.right.mean == 3 / 8
    assert found.pass_at[1] == 3 / 8
    assert found.pass_at[2] == pytest.approx(((1 - math.comb(3, 2) / 6) + (1 - math.comb(2, 2) / 6)) / 2)
    assert found.pass_at[4] == 1.0
    assert found.right.n == 2


def test_pass_at_k_goes_no_further_than_every_question_has_rollouts():
    rollouts = [played("a", number=n) for n in range(3)] + [played("b", number=n) for n in range(8)]
    assert list(metrics.accuracy(rollouts).pass_at) == [1, 2, 3]


def test_the_score_of_a_benchmark_may_be_finer_than_right_and_wrong():
    found = metrics.accuracy([played("a", value=0.8), played("b", right=False, value=0.0)])
    assert (found.right.mean, found.value.mean) == (0.5, 0.4)


def test_benchmarks_and_categories_are_told_apart():
    rollouts = [
        played("a", benchmark="one", category="x"),
        played("b", benchmark="one", category="y", right=False),
        played("c", benchmark="two", category="x", right=False),
    ]
    found = {
        name: {k: v.right.mean for k, v in several.items()} for name, several in metrics.by_category(rollouts).items()
    }
    assert found == {"one": {"x": 1.0, "y": 0.0}, "two": {"x": 0.0}}


def forms(name, rights):
    """One question in four orders of its choices, as HR-Bench has it."""
    texts = ["red", "blue", "green", "grey"]
    for turn, right in enumerate(rights):
        choices = tuple(f"{letter}. {text}" for letter, text in zip("ABCD", texts[turn:] + texts[:turn], strict=True))
        one = played(f"{name}{turn}", choices=choices, right=right)
        asked = replace(one.question.sample, question=f"What of {name}?")
        yield replace(one, question=replace(one.question, sample=asked, cycle=str(turn)))


def test_a_question_in_four_orders_is_one_group():
    rollouts = [*forms("a", [1, 1, 1, 1]), *forms("b", [1, 1, 1, 0])]
    found = metrics.accuracy(rollouts)
    assert found.right.mean == 7 / 8
    assert found.right.n == 2
    assert (found.circular.mean, found.circular.n) == (0.5, 2)


def test_every_order_has_its_own_accuracy():
    rollouts = [*forms("a", [1, 1, 1, 1]), *forms("b", [1, 1, 0, 0])]
    found = metrics.by_cycle(rollouts)["bench"]
    assert [found[cycle].right.mean for cycle in "0123"] == [1.0, 1.0, 0.5, 0.5]


def test_a_benchmark_without_orders_has_no_circular_accuracy():
    assert metrics.accuracy([played("a"), played("b")]).circular is None


# --- tools


def test_the_buckets_are_codevs():
    rollouts = [
        played("a"),
        played("b", right=False, rounds=[looked()]),
        played("c", rounds=[looked()]),
        played("d", rounds=[looked()] * 3),
        played("e", right=False, rounds=[looked()] * 7),
    ]
    found = [(bucket.name, bucket.n, bucket.share, bucket.accuracy) for bucket in metrics.by_tool_calls(rollouts)]
    assert found == [
        ("no tools", 1, 0.2, 1.0),
        ("1 tool", 2, 0.4, 0.5),
        ("2 tools", 0, 0.0, 0.0),
        ("3+ tools", 2, 0.4, 0.5),
    ]


def test_code_ratio_pass_rate_and_lines_are_figrs():
    rollouts = [
        played("a", rounds=[looked(code="x = 1\n\n  \nprint(x)"), looked("error", code="print(y)")]),
        played("b", rounds=[looked("blocked", code="import os\nos.remove('a')\n")]),
        played("c"),
        played("d"),
    ]
    found = metrics.code(rollouts)
    assert found.tool_use.mean == 0.5
    assert found.ratio.mean == 0.25  # what was blocked was not executed
    assert found.pass_rate == pytest.approx(1 / 3)
    assert found.lines == pytest.approx((2 + 1 + 2) / 3)
    assert (found.n_programs, found.n_per_rollout) == (3, 0.75)


def test_no_programs_have_no_pass_rate():
    assert metrics.code([played("a")]).pass_rate == 0.0


def test_tools_are_counted_by_program():
    plot = looked(code="plt.imshow(image_clue_0)\nplt.show()")
    rollouts = [played("a", rounds=[looked(), plot]), played("b", rounds=[looked()])]
    assert metrics.tools(rollouts) == {Tool.CROP: 2, Tool.NO_OP: 1}


# --- what is read and written


def test_visual_tokens_count_question_and_observations():
    shown = ImageRef("3" * 64, 56, 84, "RGB", "PNG")
    one = played("a", rounds=[looked(images=(shown, shown))])
    found = metrics.tokens_seen([one], QWEN2_5_VL)
    assert (found["question"].mean, found["observations"].mean) == (23 * 17, 2 * 6)
    assert found["all"].mean == 23 * 17 + 12


def test_broken_rollouts_are_counted_by_reason():
    rollouts = [
        played("a"),
        *(played(f"b{n}", error="malformed_turn") for n in range(2)),
        played("c", error="too_many_rounds"),
    ]
    assert metrics.broken(rollouts) == {"malformed_turn": 2, "too_many_rounds": 1}


def test_what_an_endpoint_failed_to_give_is_no_answer_of_the_policys():
    assert played("a", error="policy_failed").failed
    assert not played("a", error="malformed_turn").failed


def test_turns_and_tokens_are_those_of_a_rollout():
    one = played("a", rounds=[looked()], usage=Usage(2, 900, 50))
    broken = played("b", rounds=[looked()], error="malformed_turn", usage=Usage(2, 1100, 150))
    found = metrics.lengths([one, broken])
    assert (found["turns"].most, found["turns"].mean) == (2, 2)
    assert (found["completion_tokens"].mean, found["prompt_tokens"].median) == (100, 1000)


def test_questions_that_name_a_region_are_counted_once_each():
    texts = ["In the region 214, 250, 381,325?", "Is 7, 8, 9 right?", "1, 2, 3, 4567890?", "Row 1, 2, 3, 4, 5."]
    rollouts = [played(text, number=k) for text in texts for k in range(2)]
    assert metrics.n_naming_a_region(rollouts) == 2
