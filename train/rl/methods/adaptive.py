"""Look Less, Reason More §4.2: forced and forbidden rollouts say whether tools are needed; free ones are to know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from train.rl import rewards
from train.rl.judging.judges import Judges
from train.rl.methods.base import Method, RolloutOutcome, RolloutScore, rate
from train.rl.settings import MethodDefaults
from train.runs import TrainError


@dataclass(frozen=True, slots=True)
class AdaptiveMethod(Method):
    """A quarter of a group is forced to use tools, a quarter forbidden, a half free (4, 4 and 8 of 16)."""

    name: ClassVar[str] = "adaptive"
    says: ClassVar[str] = "necessity from forced and forbidden rollouts; free ones are paid for agreeing with it"
    protocol: ClassVar[str] = "tool_call"
    terms: ClassVar[MethodDefaults] = MethodDefaults(
        learning_rate=1e-6,
        schedule="cosine",
        generations=16,
        max_rounds=6,
        max_tokens=10_000,
        top_p=0.95,
        epochs=3.0,
        scale="group",
        loss_type="grpo",
    )
    sources: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("learning_rate", "schedule", "generations", "max_rounds"), "§5.1"),
        **dict.fromkeys(("epochs", "beta", "temperature", "top_p", "max_tokens"), "table A1"),
        "batch": "256 prompts (§5.1)",
    }

    def modes(self, n_rollouts: int) -> tuple[str, ...]:
        """Forced, forbidden, free. Raises ``TrainError`` for a group that has no quarters."""
        if n_rollouts % 4:
            raise TrainError(
                f"{self.name} divides a group into quarters (forced, forbidden, free, free): {n_rollouts} rollouts "
                "cannot be; choose a multiple of 4 for --generations"
            )
        quarter = n_rollouts // 4
        return ("forced",) * quarter + ("forbidden",) * quarter + ("free",) * (2 * quarter)

    async def score(self, group: Sequence[RolloutOutcome], judges: Judges) -> list[RolloutScore]:
        """Eqs. 4 to 9. Necessity is measured of this group alone: a stored one was worse (§5.3.3 and figure 3)."""
        rated = await rate(group, judges)
        with_tools, without = (_accuracy(rated, mode) for mode in ("forced", "forbidden"))
        steady = rewards.consistency_penalty([outcome.used_tool for outcome in group if outcome.mode == "free"])
        necessary = rewards.necessity(with_tools, without)
        return [_scored(outcome, right, necessary, steady) for outcome, right in rated]


def _accuracy(rated: Sequence[tuple[RolloutOutcome, float]], mode: str) -> float:
    """Of the rollouts in a mode; where all of them broke, nothing speaks for tools."""
    return fmean([right for outcome, right in rated if outcome.mode == mode] or [0.0])


def _scored(outcome: RolloutOutcome, correct: float, necessary: bool, steady: float) -> RolloutScore:
    if outcome.mode == "free":
        aligned = rewards.alignment(bool(correct), outcome.used_tool, necessary)
        reward = rewards.adaptive_rollout(correct, aligned, steady)
        parts = {"accuracy_free": correct, "alignment": aligned, "consistency": steady}
    else:
        obeyed = rewards.instruction_following(outcome.used_tool, outcome.mode)
        reward = rewards.necessity_rollout(correct, obeyed)
        parts = {f"accuracy_{outcome.mode}": correct, f"instruction_{outcome.mode}": obeyed}
    return RolloutScore(reward, correct, {**parts, "necessity": float(necessary)})
