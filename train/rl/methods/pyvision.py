"""PyVision-RL §3: a right answer earns more for every call; oversampling, filtering and ranking of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from train.rl import rewards
from train.rl.judging.judges import Judges
from train.rl.methods.base import RUN_OUT, Method, RolloutOutcome, RolloutScore, correct_of
from train.rl.settings import MethodDefaults


@dataclass(frozen=True, slots=True)
class PyVisionMethod(Method):
    """The accumulative tool reward. The released code trains on rollouts with errors, too, and pays for their calls."""

    variant: rewards.Variant = "paper"

    name: ClassVar[str] = "pyvision"
    says: ClassVar[str] = "1 + 0.1 per program, when right; groups with most spread are trained"
    protocol: ClassVar[str] = "pyvision"
    # §3.4: learning rate, 8 rollouts, 32 prompts for 16, no standard deviation; §4.2: 4 turns
    terms: ClassVar[MethodDefaults] = MethodDefaults(learning_rate=1e-6, generations=8, max_rounds=4, oversample=2.0)

    @property
    def broken(self) -> frozenset[str]:
        """Algorithm 1: timeout, runtime death or execution error."""
        return RUN_OUT | {"error", "blocked"} if self.variant == "paper" else RUN_OUT

    async def score(self, group: Sequence[RolloutOutcome], judges: Judges) -> list[RolloutScore]:
        """PyVision-RL eq. 1."""
        correct = await correct_of(group, judges)
        return [self._scored(outcome, right) for outcome, right in zip(group, correct, strict=True)]

    def _scored(self, outcome: RolloutOutcome, correct: float) -> RolloutScore:
        n_failed = outcome.n_calls - outcome.n_ok
        reward = rewards.pyvision(bool(correct), outcome.n_calls, n_failed=n_failed, variant=self.variant)
        return RolloutScore(reward, correct, {"accuracy": correct, "tool_bonus": reward - correct})
