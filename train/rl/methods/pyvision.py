"""PyVision-RL §3: a right answer earns more for every call; oversampling, filtering and ranking of groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from darkroom.train.rl import rewards
from darkroom.train.rl.judging.judges import Judges
from darkroom.train.rl.methods.base import RUN_OUT, Method, RolloutOutcome, RolloutScore
from darkroom.train.rl.settings import MethodDefaults


@dataclass(frozen=True, slots=True)
class PyVisionMethod(Method):
    """The accumulative tool reward. The released code trains on rollouts with errors, too, and pays for their calls."""

    variant: rewards.Variant = "paper"
    reward_per_call: float = 0.1
    mode: Literal["free", "no_libraries"] = "free"
    """The prompt; ``no_libraries`` has the rule of the printed one against cv2 and PIL (figure 8)."""
    sorting: bool = True
    """False: of an oversampled batch's groups with spread, the first are trained (figure 5, without sorting)."""

    name: ClassVar[str] = "pyvision"
    says: ClassVar[str] = "1 + 0.1 per program, when right; groups with most spread are trained"
    protocol: ClassVar[str] = "pyvision"
    terms: ClassVar[MethodDefaults] = MethodDefaults(
        learning_rate=1e-6, generations=8, max_rounds=4, oversample=2.0, min_pixels=3_136, max_pixels=2_000_000
    )
    sources: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("learning_rate", "generations", "oversample", "min_pixels", "max_pixels"), "§3.4"),
        "scale": "eq. 2",
        "max_rounds": "figure 5",
        "batch": "16 prompts, 700 steps (§3.4)",
    }

    def modes(self, n_rollouts: int) -> tuple[str, ...]:
        """The prompt of the field ``mode``."""
        return (self.mode,) * n_rollouts

    @property
    def breaks_over_limit(self) -> bool:
        """§3.3: image limits exceeded."""
        return self.variant == "paper"

    @property
    def ranks_groups(self) -> bool:
        """Standard deviation sorting (§3.3)."""
        return self.sorting

    @property
    def broken(self) -> frozenset[str]:
        """Algorithm 1: timeout, runtime death or execution error."""
        return RUN_OUT | {"error", "blocked"} if self.variant == "paper" else RUN_OUT

    async def score_one(self, outcome: RolloutOutcome, correct: float, judges: Judges) -> RolloutScore:
        """Score by PyVision-RL eq. 1."""
        n_failed = outcome.n_calls - outcome.n_ok
        reward = rewards.pyvision(
            bool(correct), outcome.n_calls, n_failed=n_failed, per_call=self.reward_per_call, variant=self.variant
        )
        return RolloutScore(reward, correct, {"accuracy": correct, "tool_bonus": reward - correct})
