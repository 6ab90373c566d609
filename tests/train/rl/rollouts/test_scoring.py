import asyncio
from statistics import pstdev

import pytest

from darkroom.train.rl.methods import METHODS, Judges
from darkroom.train.rl.rollouts.scoring import Scores, scored
from tests.train.outcomes import looked, outcome


def of(*outcomes, method="thyme", size=2):
    return asyncio.run(scored(outcomes, METHODS[method](), Judges(), size=size))


RIGHT, WRONG, NONE = outcome("red"), outcome("blue"), outcome(None)
BROKEN = outcome("red", sandbox_error="SandboxClosed: gone")


def test_a_broken_rollout_is_not_scored():
    found = of(RIGHT, BROKEN)
    assert found.rewards == (1.5, None)
    assert found.broken == (None, "SandboxClosed: gone")
    assert found.correct == (1.0, None)


def test_a_group_that_broke_whole_is_no_error():
    assert of(BROKEN, BROKEN, RIGHT, WRONG).rewards == (None, None, 1.5, 0.5)


def test_advantages_are_relative_to_the_group():
    found = of(RIGHT, WRONG, WRONG, WRONG).with_advantages(2, scale="none")
    assert found.advantages == (0.5, -0.5, 0.0, 0.0)


def test_the_groups_with_most_spread_are_kept():
    """Algorithm 1 on a planted batch: no spread, little, much, broken."""
    some = outcome("red", looked())
    found = of(RIGHT, RIGHT, some, RIGHT, some, WRONG, BROKEN, BROKEN, method="pyvision")
    groups, out = found.select_groups(2, keep=2)
    assert groups == [2, 1]
    assert out == [False] * 4


def test_without_sorting_the_first_groups_with_spread_are_kept():
    some = outcome("red", looked())
    found = of(RIGHT, RIGHT, some, RIGHT, some, WRONG, BROKEN, BROKEN, method="pyvision_without_sorting")
    assert found.select_groups(2, keep=1, ranked=METHODS["pyvision_without_sorting"]().ranks_groups)[0] == [1]
    assert found.select_groups(2, keep=1, ranked=METHODS["pyvision"]().ranks_groups)[0] == [2]


def test_without_necessity_rewards_forced_and_forbidden_rollouts_are_in_no_mean():
    """Their advantage is none, and the free ones are compared among themselves (Look Less, table 4)."""
    group = [
        outcome("red", looked(), mode="forced"),
        outcome("blue", mode="forbidden"),
        outcome("red", looked()),
        WRONG,
    ]
    found = of(*group, method="adaptive_without_necessity_rewards", size=4).with_advantages(4, scale="none")
    assert found.untrained == [True, True, False, False]
    assert found.advantages[:2] == (0.0, 0.0)
    assert found.advantages[2] == pytest.approx(-found.advantages[3])
    assert found.advantages[2] > 0
    assert found.parts[2]["necessity"] == 1.0
    assert not any(of(*group, method="adaptive", size=4).untrained)


def test_places_that_no_group_deserves_are_filled_and_left_out():
    found = of(RIGHT, WRONG, RIGHT, RIGHT, WRONG, WRONG)
    groups, out = found.select_groups(2, keep=2)
    assert groups[0] == 0
    assert out == [False, False, True, True]


def test_a_broken_rollout_of_a_kept_group_is_left_out():
    found = asyncio.run(scored([RIGHT, WRONG, BROKEN], METHODS["thyme"](), Judges(), size=3))
    _, out = found.select_groups(3, keep=1)
    assert out == [False, False, True]


def test_chosen_groups_come_in_their_new_order():
    found = of(RIGHT, WRONG, WRONG, NONE).with_advantages(2, scale="none")
    assert found.of_groups([1, 0], 2).rewards == (0.5, 0.0, 1.5, 0.5)


def test_what_is_logged_of_rollouts():
    failed = looked("error", error="NameError")
    metrics = of(outcome("red", looked(), failed), WRONG, NONE, BROKEN).rollout_metrics()
    means = {name: sum(values) / len(values) for name, values in metrics.items() if values}
    assert means["accuracy"] == pytest.approx(1 / 3)
    assert means["answered"] == pytest.approx(2 / 3)
    assert means["broken_rate"] == 0.25
    assert means["tool_calls"] == 0.5
    assert means["tool_use"] == 0.25
    assert means["executable_rate"] == 0.5
    assert means["parts/format"] == pytest.approx(2 / 3)


def test_a_batch_without_programs_has_no_executable_rate():
    assert of(RIGHT, WRONG).rollout_metrics()["executable_rate"] == []


def test_what_is_logged_of_groups():
    metrics = of(RIGHT, WRONG, RIGHT, RIGHT).with_advantages(2, scale="none").group_metrics(2)
    assert metrics["group_std"] == [pstdev([1.5, 0.5]), 0.0]
    assert metrics["groups/no_spread"] == [0.5]
    assert metrics["groups/broken"] == [0.0]


def test_right_rollouts_that_are_trained_away_from_are_counted_among_the_trained():
    more = outcome("red", looked(), looked())
    scores = of(RIGHT, more, BROKEN, RIGHT, method="pyvision", size=4).with_advantages(4, scale="none")
    away = scores.trained_metrics(scores.untrained)["positive_with_negative_advantage"]
    assert (len(away), sum(away)) == (3, 2.0)  # of 1.0, 1.2 and 1.0


@pytest.mark.parametrize(("ranked", "away"), [(True, [0.0, 0.0]), (False, [1.0, 0.0])])
def test_sorting_leaves_right_rollouts_with_negative_advantage_out_of_the_trained_batch(ranked, away):
    """PyVision-RL figure 6: a group that is right with one call and with two has little spread."""
    one, two = outcome("red", looked()), outcome("red", looked(), looked())
    scores = of(one, two, RIGHT, WRONG, method="pyvision").with_advantages(2, scale="none")
    groups, dropped = scores.select_groups(2, keep=1, ranked=ranked)
    assert scores.of_groups(groups, 2).trained_metrics(dropped)["positive_with_negative_advantage"] == away


def test_nothing_is_scored_before_the_first_batch():
    assert Scores().rewards == ()
