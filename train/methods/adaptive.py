"""Look Less, Reason More §4.2: forced and forbidden rollouts say whether tools are needed; free ones are to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from train import rewards
from train.faults import TrainFault
from train.methods.ask import Judges
from train.methods.base import Method, Scored, Terms, correct_of
from train.rollouts.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Adaptive(Method):
    """A quarter of a group is forced to use tools, a quarter forbidden, a half free (4, 4 and 8 of 16)."""

    name: ClassVar[str] = "adaptive"
    says: ClassVar[str] = "necessity from forced and forbidden rollouts; free ones are paid for agreeing with it"
    protocol: ClassVar[str] = "tool_call"
    # §5.1 and table A1: learning rate, 3 epochs, 16 rollouts, no KL, temperature 1, top-p 0.95; at most 6 operations
    terms: ClassVar[Terms] = Terms(
        learning_rate=1e-6, generations=16, max_rounds=6, top_p=0.95, epochs=3.0, scale="group", loss_type="grpo"
    )

    def modes(self, n_rollouts: int) -> tuple[str, ...]:
        """Forced, forbidden, free. Raises ``TrainFault`` for a group that has no quarters."""
        if n_rollouts % 4:
            raise TrainFault(
                f"{self.name} divides a group into quarters (forced, forbidden, free, free): {n_rollouts} rollouts "
                "cannot be; choose a multiple of 4 for --generations"
            )
        quarter = n_rollouts // 4
        return ("forced",) * quarter + ("forbidden",) * quarter + ("free",) * (2 * quarter)

    async def score(self, group: Sequence[Outcome], judges: Judges) -> list[Scored]:
        """Eqs. 4 to 9. Necessity is measured of this group alone: a stored one was worse (§5.3.3 and figure 3)."""
        correct = await correct_of(group, judges)
        rated = list(zip(group, correct, strict=True))
        with_tools, without = (_accuracy(rated, mode) for mode in ("forced", "forbidden"))
        steady = rewards.consistency_penalty([one.used_tool for one in group if one.mode == "free"])
        necessary = rewards.necessity(with_tools, without)
        return [_scored(one, right, necessary, steady) for one, right in rated]


def _accuracy(rated: Sequence[tuple[Outcome, float]], mode: str) -> float:
    """Of the rollouts in a mode; where all of them broke, nothing speaks for tools."""
    return fmean([right for one, right in rated if one.mode == mode] or [0.0])


def _scored(outcome: Outcome, correct: float, necessary: bool, steady: float) -> Scored:
    if outcome.mode == "free":
        aligned = rewards.alignment(bool(correct), outcome.used_tool, necessary)
        reward = rewards.adaptive_rollout(correct, aligned, steady)
        parts = {"accuracy_free": correct, "alignment": aligned, "consistency": steady}
    else:
        obeyed = rewards.instruction_following(outcome.used_tool, outcome.mode)
        reward = rewards.necessity_rollout(correct, obeyed)
        parts = {f"accuracy_{outcome.mode}": correct, f"instruction_{outcome.mode}": obeyed}
    return Scored(reward, correct, {**parts, "necessity": float(necessary)})
