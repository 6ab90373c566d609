"""The rewards of a batch of rollouts, their advantages, the groups that are trained on, and their metrics."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from statistics import fmean, pstdev
from typing import Literal, NamedTuple

from darkroom.train.rl.methods import Judges, Method, method_errors
from darkroom.train.rl.methods.base import RolloutOutcome, RolloutScore
from darkroom.train.rl.settings import Scale
from darkroom.train.runs import TrainError

Rewards = Sequence[float | None]
"""Rewards of one group; None is broken."""
Why = Literal["broken", "no_spread", "outranked"]
"""``broken``: no rollout of the group is whole. ``no_spread``: all that are get the same reward. ``outranked``: the
group has less spread than those that were kept."""

_SAME = 1e-9
"""Rewards that differ by less are the same, added up in another order."""


class GroupSelection(NamedTuple):
    """The groups that are trained on, by their index."""

    kept: tuple[int, ...]
    """The largest spread first; of equal ones the earlier first."""
    filtered: Mapping[int, Why]
    """All the others, and why."""
    spreads: tuple[float, ...]
    """The standard deviation of every group."""


def group_relative(rewards: Rewards, *, scale: Scale = "none") -> list[float]:
    """The advantages: every rollout's reward less the mean of its group (PyVision-RL eq. 2, CodeV §4.3, FIGR eq. 8).
    ``scale="group"`` divides by the group's standard deviation, as GRPO does and PyVision-RL §3.4 advises against.
    Groups of equal rewards have advantages of 0. Raises ``TrainError`` for rewards that are not finite."""
    whole = _whole(rewards)
    spread = _spread(whole)
    if not spread:
        return [0.0] * len(rewards)
    mean, divisor = fmean(whole), spread if scale == "group" else 1.0
    return [0.0 if reward is None else (reward - mean) / divisor for reward in rewards]


def oversample_filter_rank(groups: Sequence[Rewards], *, keep: int, ranked: bool = True) -> GroupSelection:
    """Select the ``keep`` groups with most spread (PyVision-RL §3.3 and algorithm 1).

    Unless ``ranked``, the first that have any (figure 5, without sorting).

    Groups are dropped that have no whole rollout, or no spread among those that are whole; of the rest those with the
    largest population standard deviation stay. The algorithm counts rollouts (``B · G``), here it is groups (``B``):
    none is divided. Raises ``TrainError`` for rewards that are not finite, ``ValueError`` for a negative ``keep``.
    """
    if keep < 0:
        raise ValueError(f"the number of groups to keep is at least 0; found {keep}")
    whole = [_whole(group) for group in groups]
    spreads = tuple(_spread(group) for group in whole)
    order = [index for index, spread in enumerate(spreads) if spread]
    flat = [index for index, spread in enumerate(spreads) if not spread]
    filtered: dict[int, Why] = {index: "no_spread" if whole[index] else "broken" for index in flat}
    if ranked:
        order.sort(key=lambda index: -spreads[index])
    filtered |= dict.fromkeys(order[keep:], "outranked")
    return GroupSelection(tuple(order[:keep]), dict(sorted(filtered.items())), spreads)


def _whole(rewards: Rewards) -> list[float]:
    whole = [float(reward) for reward in rewards if reward is not None]
    if not all(map(math.isfinite, whole)):
        raise TrainError(f"a reward is a finite number, or None for a broken rollout; the method gave {list(rewards)}")
    return whole


def _spread(whole: Sequence[float]) -> float:
    """The population standard deviation; 0 for rewards that are the same, and for none."""
    return pstdev(whole) if whole and max(whole) - min(whole) > _SAME else 0.0


Metrics = dict[str, list[float]]
"""Values of a metric, over whatever it is a mean of."""


@dataclass(frozen=True, slots=True)
class Scores:
    """One entry per rollout in every tuple, in groups; what is None was not scored, because its rollout broke. Rewards
    are None of rollouts that the method does not train, too."""

    outcomes: tuple[RolloutOutcome, ...] = ()
    broken: tuple[str | None, ...] = ()
    rewards: tuple[float | None, ...] = ()
    correct: tuple[float | None, ...] = ()
    parts: tuple[Mapping[str, float], ...] = ()
    advantages: tuple[float, ...] = ()

    def with_advantages(self, size: int, *, scale: Scale) -> Scores:
        advantages = chain.from_iterable(group_relative(group, scale=scale) for group in self._groups(size))
        return replace(self, advantages=tuple(advantages))

    @property
    def untrained(self) -> list[bool]:
        return [reward is None for reward in self.rewards]

    def select_groups(self, size: int, *, keep: int, ranked: bool = True) -> tuple[list[int], list[bool]]:
        """Select ``keep`` groups by algorithm 1 of PyVision-RL, and say for each of their rollouts if it is left out.
        Where fewer groups are worth it, others fill their places and are left out of the loss."""
        chosen = oversample_filter_rank(self._groups(size), keep=keep, ranked=ranked)
        filled = [*chosen.kept, *chosen.filtered][:keep]
        rows = [(group, group * size + number) for group in filled for number in range(size)]
        return filled, [group not in chosen.kept or self.rewards[row] is None for group, row in rows]

    def of_groups(self, groups: Sequence[int], size: int) -> Scores:
        rows = [group * size + number for group in groups for number in range(size)]
        columns = [getattr(self, field.name) for field in fields(self)]
        return Scores(*(tuple(column[row] for row in rows) for column in columns))

    def rollout_metrics(self) -> Metrics:
        whole = [outcome for outcome, reason in zip(self.outcomes, self.broken, strict=True) if reason is None]
        observations = [[turn.observation for turn in outcome.rollout.rounds] for outcome in self.outcomes]
        metrics: Metrics = {
            "accuracy": [right for right in self.correct if right is not None],
            "answered": [float(outcome.answer is not None) for outcome in whole],
            "broken_rate": [float(reason is not None) for reason in self.broken],
            "tool_calls": [float(outcome.n_calls) for outcome in self.outcomes],
            "tool_use": [float(outcome.used_tool) for outcome in self.outcomes],
            "executable_rate": [float(observation.status == "ok") for observation in chain(*observations)],
            "turns": [float(len(outcome.turns)) for outcome in self.outcomes],
            "tokens": [float(outcome.n_tokens) for outcome in self.outcomes],
            "images_shown": [float(sum(len(one_round.images) for one_round in rounds)) for rounds in observations],
            "sandbox/seconds": [outcome.seconds for outcome in self.outcomes],
        }
        for parts in self.parts:
            for name, value in parts.items():
                metrics.setdefault(f"parts/{name}", []).append(value)
        return metrics

    def trained_metrics(self, dropped: Sequence[bool]) -> Metrics:
        """Values per rollout of a batch that is trained on, without those ``dropped``: 1 for a right one that is
        trained away from (PyVision-RL figure 6). These come of rewards for more than the answer: right with few calls,
        in a group that is right with many."""
        rows = zip(self.correct, self.advantages, dropped, strict=True)
        away = [float(bool(right) and advantage < 0) for right, advantage, is_dropped in rows if not is_dropped]
        return {"positive_with_negative_advantage": away}

    def group_metrics(self, size: int) -> Metrics:
        """Values per group that was rolled out."""
        groups = self._groups(size)
        chosen = oversample_filter_rank(groups, keep=len(groups))
        reasons = list(chosen.filtered.values())
        return {
            "group_std": list(chosen.spreads),
            "groups/broken": [reasons.count("broken") / len(groups)],
            "groups/no_spread": [reasons.count("no_spread") / len(groups)],
        }

    def _groups(self, size: int) -> list[Rewards]:
        return [self.rewards[at : at + size] for at in range(0, len(self.rewards), size)]


async def scored(outcomes: Sequence[RolloutOutcome], method: Method, judges: Judges, *, size: int) -> Scores:
    """Score a batch, all groups at the same time. Raises ``JudgeDown``."""
    broken = [outcome.failed(method.broken, over_limit=method.breaks_over_limit) for outcome in outcomes]
    whole = [[row for row in range(at, at + size) if broken[row] is None] for at in range(0, len(outcomes), size)]
    whole = [rows for rows in whole if rows]
    with method_errors(method):
        scored_groups = await asyncio.gather(*(method.score([outcomes[row] for row in rows], judges) for rows in whole))
        if wrong := [score for score in chain(*scored_groups) if not isinstance(score, RolloutScore)]:
            raise TypeError(f"expected a RolloutScore for each rollout; found {wrong[0]!r}")
        by_row = dict(zip(chain(*whole), chain(*scored_groups), strict=True))
        scores = [by_row.get(row) for row in range(len(outcomes))]
        return Scores(
            outcomes=tuple(outcomes),
            broken=tuple(broken),
            rewards=tuple(score.reward if score and score.is_trained else None for score in scores),
            correct=tuple(score.correct if score else None for score in scores),
            parts=tuple(score.parts if score else {} for score in scores),
        )
