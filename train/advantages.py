"""Advantages: what a rollout's reward is worth within its group, and which groups are worth training on.

    group_relative([2.0, 1.0, None, 0.0], scale="none")                 # [1.0, 0.0, 0.0, -1.0]
    chosen = oversample_filter_rank([[1, 0], [1, 1], [None, None], [1.3, 0]], keep=1)
    chosen.kept                                                         # (3,)
    chosen.filtered                                                     # {0: "outranked", 1: "no_spread", 2: …}

A group is the rollouts of one question. A reward of None is a broken rollout's: the environment failed, so that the
reward says nothing of the policy. It counts neither in a mean nor in a deviation, and its advantage is 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Literal, NamedTuple

from train.options import Scale

Rewards = Sequence[float | None]
"""Of one group; None is broken."""
Why = Literal["broken", "no_spread", "outranked"]
"""``broken``: no rollout of the group is whole. ``no_spread``: all that are get the same reward. ``outranked``: the
group has less spread than those that were kept."""

_SAME = 1e-9
"""Rewards that differ by less are the same, added up in another order."""


class Chosen(NamedTuple):
    """Which groups are trained on, by their index."""

    kept: tuple[int, ...]
    """Those with the largest spread first; of equal ones the earlier first."""
    filtered: Mapping[int, Why]
    """All the others, and why."""
    spreads: tuple[float, ...]
    """The standard deviation of every group."""


def group_relative(rewards: Rewards, *, scale: Scale = "none") -> list[float]:
    """Every rollout's reward less the mean of its group (PyVision-RL eq. 2, CodeV §4.3, FIGR eq. 8).

    ``scale="group"`` divides by the group's standard deviation, as GRPO does and PyVision-RL §3.4 advises against. A
    group of equal rewards has advantages of 0 either way. Raises ``ValueError`` for rewards that are not finite.
    """
    whole = _whole(rewards)
    spread = _spread(whole)
    if not spread:
        return [0.0] * len(rewards)
    mean, divisor = fmean(whole), spread if scale == "group" else 1.0
    return [0.0 if reward is None else (reward - mean) / divisor for reward in rewards]


def oversample_filter_rank(groups: Sequence[Rewards], *, keep: int) -> Chosen:
    """Oversampling, filtering and ranking (PyVision-RL §3.3 and algorithm 1): the ``keep`` groups with most spread.

    Groups go that have no whole rollout, or no spread among those that are whole; of the rest the ones with the
    largest population standard deviation stay, which are neither too easy nor too hard. The algorithm adds up rollouts
    (``B · G``), here it is groups (``B``): a group is never divided. Fewer are kept when fewer are left. Raises
    ``ValueError`` for rewards that are not finite and a negative ``keep``.
    """
    if keep < 0:
        raise ValueError(f"the number of groups to keep is at least 0; found {keep}")
    whole = [_whole(group) for group in groups]
    spreads = tuple(_spread(group) for group in whole)
    filtered: dict[int, Why] = {
        index: "no_spread" if group else "broken" for index, group in enumerate(whole) if not spreads[index]
    }
    ranked = sorted((index for index in range(len(groups)) if spreads[index]), key=lambda index: -spreads[index])
    filtered |= dict.fromkeys(ranked[keep:], "outranked")
    return Chosen(tuple(ranked[:keep]), dict(sorted(filtered.items())), spreads)


def positive_with_negative_advantage(correct: Sequence[bool], advantages: Sequence[float]) -> float:
    """Of all rollouts of a batch, those that are right and are trained away from (PyVision-RL figure 6); 0..1.

    They come of rewards for more than the answer: right with few calls, in a group that is right with many.
    """
    pairs = list(zip(correct, advantages, strict=True))
    return sum(right and advantage < 0 for right, advantage in pairs) / len(pairs) if pairs else 0.0


def _whole(rewards: Rewards) -> list[float]:
    whole = [float(reward) for reward in rewards if reward is not None]
    if not all(map(math.isfinite, whole)):
        raise ValueError(f"a reward is a finite number, or None for a broken rollout; found {list(rewards)}")
    return whole


def _spread(whole: Sequence[float]) -> float:
    """The population standard deviation; 0 for rewards that are the same, and for none."""
    return pstdev(whole) if whole and max(whole) - min(whole) > _SAME else 0.0
