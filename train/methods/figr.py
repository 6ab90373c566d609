"""FIGR §3.3: a right answer earns a whole point for a drawing where one helps, and little where none does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from train import rewards
from train.methods.ask import Judges
from train.methods.base import Method, Scored, Terms, correct_of
from train.rollouts.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Figr(Method):
    """A drawing is an image that a program showed without an error."""

    variant: rewards.Variant = "paper"

    name: ClassVar[str] = "figr"
    says: ClassVar[str] = "answer, format, and a drawing where the question's label says that one helps"
    protocol: ClassVar[str] = "tool_call"
    # §4.1: 3 rounds, temperature 0.7, no standard deviation (eq. 8); learning rate and group size are not in the paper
    terms: ClassVar[Terms] = Terms(learning_rate=1e-6, generations=8, max_rounds=3, temperature=0.7, loss_type="grpo")

    async def score(self, group: Sequence[Outcome], judges: Judges) -> list[Scored]:
        """FIGR eqs. 4 to 6 and 11."""
        correct = await correct_of(group, judges)
        return [self._scored(outcome, right) for outcome, right in zip(group, correct, strict=True)]

    def _scored(self, outcome: Outcome, correct: float) -> Scored:
        formatted = rewards.formatted(outcome.text, protocol=outcome.protocol)
        suitable = outcome.asked.suitable
        drawn = self._executed(outcome)
        reward = rewards.figr(bool(correct), bool(formatted), suitable=suitable, executed=drawn, variant=self.variant)
        parts = {
            "accuracy": correct,
            "format": formatted,
            "drawn": float(drawn),
            "visual": reward - correct - formatted,
        }
        return Scored(reward, correct, parts)

    def _executed(self, outcome: Outcome) -> bool:
        """A drawing; the released code wants exactly one where drawing is suitable, and any program elsewhere."""
        ran = [turn.observation for turn in outcome.rollout.rounds if turn.observation.status == "ok"]
        if self.variant == "paper":
            return any(seen.images for seen in ran)
        return any(len(seen.images) == 1 for seen in ran) if outcome.asked.suitable else bool(ran)
