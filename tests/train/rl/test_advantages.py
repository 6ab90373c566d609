"""Advantages within a group, and the choice of groups, against PyVision-RL's algorithm 1 done by hand."""

import math

import pytest
from hypothesis import given, strategies as st

from darkroom.train.rl.rollouts.scoring import group_relative, oversample_filter_rank
from darkroom.train.runs import TrainError

REWARD = st.none() | st.sampled_from([0.0, 0.5, 1.0, 1.1, 1.2, 1.3])
GROUP = st.lists(REWARD, min_size=1, max_size=6)


def test_an_advantage_is_the_reward_less_the_mean():
    assert group_relative([2.0, 1.0, 0.0, 1.0], scale="none") == [1.0, 0.0, -1.0, 0.0]


def test_a_broken_rollout_is_not_in_the_mean():
    assert group_relative([2.0, 1.0, None, 0.0], scale="none") == [1.0, 0.0, 0.0, -1.0]


def test_a_scaled_advantage_is_in_deviations_of_the_whole_rollouts():
    assert group_relative([1.0, 0.0, 1.0, 0.0, None], scale="group") == [1.0, -1.0, 1.0, -1.0, 0.0]


@pytest.mark.parametrize("scale", ["none", "group"])
@pytest.mark.parametrize("rewards", [[], [None, None], [1.3], [0.1, 0.1, 0.1], [1.0, None], [0.3, 0.1 + 0.2]])
def test_a_group_without_spread_has_no_advantage(rewards, scale):
    assert group_relative(rewards, scale=scale) == [0.0] * len(rewards)


@given(GROUP, st.sampled_from(["none", "group"]))
def test_advantages_add_up_to_nothing(rewards, scale):
    assert math.fsum(group_relative(rewards, scale=scale)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_a_reward_that_is_no_number_is_refused(reward):
    with pytest.raises(TrainError, match="None for a broken rollout; the method gave"):
        group_relative([1.0, reward])
    with pytest.raises(TrainError, match="None for a broken rollout; the method gave"):
        oversample_filter_rank([[1.0, reward]], keep=1)


PLANTED = (
    (1.0, 0.0, 0.0, 0.0),  # mean 1/4, deviation √3/4 = 0.433
    (0.0, 0.0, 0.0, 0.0),  # too hard
    (1.2, 1.0, 1.1, 1.1),  # right with different numbers of calls: deviation √(0.02/4) = 0.071
    (None, None, None, None),  # the environment failed
    (1.2, 1.2, 0.0, 0.0),  # deviation 0.6
    (None, 1.1, None, 1.1),  # what is left of it is all the same
    (1.0, None, 0.0, 0.0),  # of three: deviation √2/3 = 0.471
    (1.0, 1.0, 1.0, 1.0),  # too easy
    (0.0, 1.0, 1.0, 1.0),  # as the first
)


def test_a_planted_batch_is_chosen_as_algorithm_1_says():
    chosen = oversample_filter_rank(PLANTED, keep=3)
    assert chosen.kept == (4, 6, 0)
    assert chosen.filtered == {
        1: "no_spread",
        2: "outranked",
        3: "broken",
        5: "no_spread",
        7: "no_spread",
        8: "outranked",
    }
    by_hand = (math.sqrt(3) / 4, 0, math.sqrt(0.005), 0, 0.6, 0, math.sqrt(2) / 3, 0, math.sqrt(3) / 4)
    assert chosen.spreads == pytest.approx(by_hand)


def test_of_equal_groups_the_earlier_is_kept():
    assert oversample_filter_rank([(0, 1), (1, 0), (1, 0)], keep=2).kept == (0, 1)


def test_a_group_is_never_divided():
    assert oversample_filter_rank([(1.0, None, 0.0), (None, None, 0.0)], keep=1).kept == (0,)


@pytest.mark.parametrize("groups", [(), PLANTED])
def test_keeping_more_than_there_are_keeps_all_that_can_be_learned_from(groups):
    chosen = oversample_filter_rank(groups, keep=100)
    assert "outranked" not in chosen.filtered.values()
    assert len(chosen.kept) + len(chosen.filtered) == len(groups)


def test_a_number_to_keep_is_not_negative():
    with pytest.raises(ValueError, match="found -1"):
        oversample_filter_rank(PLANTED, keep=-1)


@given(st.lists(GROUP, max_size=8), st.integers(0, 9))
def test_every_group_is_kept_or_filtered_and_none_twice(groups, keep):
    chosen = oversample_filter_rank(groups, keep=keep)
    assert sorted([*chosen.kept, *chosen.filtered]) == list(range(len(groups)))
    assert len(chosen.kept) <= keep


@given(st.lists(GROUP, max_size=8), st.integers(0, 9))
def test_no_group_that_is_outranked_has_more_spread_than_one_that_is_kept(groups, keep):
    chosen = oversample_filter_rank(groups, keep=keep)
    kept = [chosen.spreads[index] for index in chosen.kept]
    outranked = [chosen.spreads[index] for index, why in chosen.filtered.items() if why == "outranked"]
    assert kept == sorted(kept, reverse=True)
    assert not kept or not outranked or min(kept) >= max(outranked)


@given(st.lists(GROUP, max_size=8).flatmap(lambda groups: st.tuples(st.just(groups), st.permutations(groups))))
def test_the_order_of_groups_changes_no_spread_that_is_kept(pair):
    before, after = (oversample_filter_rank(groups, keep=3) for groups in pair)
    assert [before.spreads[index] for index in before.kept] == [after.spreads[index] for index in after.kept]


@given(GROUP.flatmap(lambda group: st.tuples(st.just(group), st.permutations(group))))
def test_the_order_of_rollouts_changes_no_spread(pair):
    before, after = (oversample_filter_rank([group], keep=1).spreads[0] for group in pair)
    assert before == pytest.approx(after)
