"""Look Less, Reason More §4.2: forced and forbidden rollouts say whether tools are needed; free ones are to know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, Literal

from darkroom.train.rl import rewards
from darkroom.train.rl.judging.judges import Judges
from darkroom.train.rl.methods.base import Method, RolloutOutcome, RolloutScore, rate
from darkroom.train.rl.settings import MethodDefaults
from darkroom.train.runs import TrainError


@dataclass(frozen=True, slots=True)
class AdaptiveMethod(Method):
    """A quarter of a group is forced to use tools, a quarter forbidden, a half free (4, 4 and 8 of 16).

    Weights are table A2's. ``forced``, ``forbidden`` and ``free`` are the parts of a group in each mode.
    """

    forced: int = 1
    forbidden: int = 1
    free: int = 2
    b1: float = 1.2
    c1: float = 1.0
    b2: float = 1.6
    b3: float = 1.2
    c2: float = 0.8
    c3: float = 1.0
    weight_instruction: float = 0.08
    weight_alignment: float = 0.05
    gamma: float = 0.1
    necessity_rewards: bool = True
    """False: forced and forbidden rollouts measure necessity and are not trained (§5.3.4, "w/o PN rewards")."""
    necessity: Literal["measured", "stored"] = "measured"
    """``stored``: the row's ``necessity_prior``, measured once before training (§5.3.3); without one, measured."""

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

    def __post_init__(self) -> None:
        self._aligned(correct=True, used_tool=True, necessary=True)
        if min(self.forced, self.forbidden, self.free) < 1:
            raise ValueError("a group needs forced, forbidden and free rollouts: each is at least 1")

    def modes(self, n_rollouts: int) -> tuple[str, ...]:
        """Divide the group into forced, forbidden and free. Raises ``TrainError`` for an indivisible group."""
        parts = {"forced": self.forced, "forbidden": self.forbidden, "free": self.free}
        n_parts = sum(parts.values())
        if n_rollouts % n_parts:
            raise TrainError(
                f"{self.name} divides a group into {'quarters' if n_parts == 4 else f'{n_parts} parts'} "
                f"({', '.join(f'{n} {mode}' for mode, n in parts.items())}): {n_rollouts} rollouts cannot be; choose a "
                f"multiple of {n_parts} for --generations"
            )
        return tuple(mode for mode, n in parts.items() for _ in range(n * n_rollouts // n_parts))

    async def score(self, group: Sequence[RolloutOutcome], judges: Judges) -> list[RolloutScore]:
        """Score by eqs. 4 to 9."""
        rated = await rate(group, judges)
        flags = [outcome.used_tool for outcome in group if outcome.mode == "free"]
        steady = rewards.consistency_penalty(flags, gamma=self.gamma)
        prior = group[0].question.necessity_prior if self.necessity == "stored" else None
        with_tools, without = (_accuracy(rated, mode) for mode in ("forced", "forbidden"))
        necessary = rewards.necessity(with_tools, without) if prior is None else prior > 0
        return [self._scored(outcome, right, necessary, steady) for outcome, right in rated]

    def _scored(self, outcome: RolloutOutcome, correct: float, necessary: bool, steady: float) -> RolloutScore:
        if outcome.mode == "free":
            aligned = self._aligned(correct=bool(correct), used_tool=outcome.used_tool, necessary=necessary)
            reward = rewards.adaptive_rollout(correct, aligned, steady, weight=self.weight_alignment)
            parts = {"accuracy_free": correct, "alignment": aligned, "consistency": steady}
        else:
            obeyed = rewards.instruction_following(outcome.used_tool, outcome.mode, b1=self.b1, c1=self.c1)
            reward = rewards.necessity_rollout(correct, obeyed, weight=self.weight_instruction)
            parts = {f"accuracy_{outcome.mode}": correct, f"instruction_{outcome.mode}": obeyed}
        is_trained = outcome.mode == "free" or self.necessity_rewards
        return RolloutScore(reward, correct, {**parts, "necessity": float(necessary)}, is_trained)

    def _aligned(self, *, correct: bool, used_tool: bool, necessary: bool) -> float:
        return rewards.alignment(correct, used_tool, necessary, b2=self.b2, b3=self.b3, c2=self.c2, c3=self.c3)


def _accuracy(rated: Sequence[tuple[RolloutOutcome, float]], mode: str) -> float:
    """Accuracy of the rollouts in a mode; 0 where all of them broke: nothing speaks for tools."""
    return fmean([right for outcome, right in rated if outcome.mode == mode] or [0.0])
