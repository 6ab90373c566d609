"""What a batch of rollouts earned, and what is logged of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from train.advantages import group_relative, oversample_filter_rank, positive_with_negative_advantage
from train.methods import Judges, Method
from train.options import Scale
from train.rollouts.outcomes import Outcome

Metrics = dict[str, list[float]]
"""Values of a metric, over whatever it is a mean of."""


@dataclass(frozen=True, slots=True)
class Scores:
    """One entry per rollout in every tuple, in groups; what is None was not scored, because its rollout broke."""

    outcomes: tuple[Outcome, ...] = ()
    broken: tuple[str | None, ...] = ()
    rewards: tuple[float | None, ...] = ()
    correct: tuple[float | None, ...] = ()
    parts: tuple[Mapping[str, float], ...] = ()
    advantages: tuple[float, ...] = ()

    def with_advantages(self, size: int, *, scale: Scale) -> Scores:
        """With every rollout's advantage in its group of ``size``."""
        groups = [group_relative(self.rewards[at : at + size], scale=scale) for at in self._starts(size)]
        return replace(self, advantages=tuple(advantage for group in groups for advantage in group))

    def ranked(self, size: int, *, keep: int) -> tuple[list[int], list[bool]]:
        """``keep`` groups by algorithm 1 of PyVision-RL, and for each of their rollouts whether it is to be left out.

        Where fewer groups are worth it, others fill their places and are left out of the loss.
        """
        groups = [self.rewards[at : at + size] for at in self._starts(size)]
        chosen = oversample_filter_rank(groups, keep=keep)
        filled = [*chosen.kept, *chosen.filtered][:keep]
        spared = [
            group not in chosen.kept or self.broken[group * size + i] is not None
            for group in filled
            for i in range(size)
        ]
        return filled, spared

    def of_groups(self, groups: Sequence[int], size: int) -> Scores:
        """The scores of these groups alone."""
        rows = [group * size + place for group in groups for place in range(size)]
        return Scores(
            outcomes=tuple(self.outcomes[row] for row in rows),
            broken=tuple(self.broken[row] for row in rows),
            rewards=tuple(self.rewards[row] for row in rows),
            correct=tuple(self.correct[row] for row in rows),
            parts=tuple(self.parts[row] for row in rows),
            advantages=tuple(self.advantages[row] for row in rows),
        )

    def of_rollouts(self) -> Metrics:
        """Means over rollouts, programs and turns."""
        whole = [one for one, reason in zip(self.outcomes, self.broken, strict=True) if reason is None]
        statuses = [turn.observation.status for one in self.outcomes for turn in one.rollout.rounds]
        metrics: Metrics = {
            "accuracy": [right for right in self.correct if right is not None],
            "answered": [float(one.answer is not None) for one in whole],
            "broken_rate": [float(reason is not None) for reason in self.broken],
            "tool_calls": [float(one.n_calls) for one in self.outcomes],
            "tool_use": [float(one.used_tool) for one in self.outcomes],
            "executable_rate": [float(status == "ok") for status in statuses],
            "turns": [float(len(one.turns)) for one in self.outcomes],
            "tokens": [float(one.n_tokens) for one in self.outcomes],
            "images_shown": [float(len(one.shown)) for one in self.outcomes],
            "sandbox/seconds": [one.seconds for one in self.outcomes],
        }
        for parts in self.parts:
            for name, value in parts.items():
                metrics.setdefault(f"parts/{name}", []).append(value)
        return metrics

    def of_groups_of(self, size: int, *, keep: int) -> Metrics:
        """Means over groups, and the share of right rollouts that are trained away from."""
        groups = [self.rewards[at : at + size] for at in self._starts(size)]
        chosen = oversample_filter_rank(groups, keep=keep)
        reasons = chosen.filtered.values()
        right = [bool(correct) for correct in self.correct]
        return {
            "group_std": list(chosen.spreads),
            "positive_with_negative_advantage": [positive_with_negative_advantage(right, self.advantages)],
            **{f"groups/{why}": [sum(one == why for one in reasons) / len(groups)] for why in ("broken", "no_spread")},
        }

    def _starts(self, size: int) -> range:
        return range(0, len(self.rewards), size)


async def scored(outcomes: Sequence[Outcome], method: Method, judges: Judges, *, size: int) -> Scores:
    """The rewards of a batch, all groups at the same time. Raises ``JudgeDown``."""
    broken = [outcome.failed(method.broken) for outcome in outcomes]
    whole = [[row for row in range(at, at + size) if broken[row] is None] for at in range(0, len(outcomes), size)]
    found = await asyncio.gather(*(method.score([outcomes[row] for row in rows], judges) for rows in whole if rows))
    by_row = {
        row: one
        for rows, group in zip([rows for rows in whole if rows], found, strict=True)
        for row, one in zip(rows, group, strict=True)
    }
    given = [by_row.get(row) for row in range(len(outcomes))]
    return Scores(
        outcomes=tuple(outcomes),
        broken=tuple(broken),
        rewards=tuple(one.reward if one else None for one in given),
        correct=tuple(one.correct if one else None for one in given),
        parts=tuple(one.parts if one else {} for one in given),
    )
