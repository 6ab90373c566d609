"""Methods whose reward follows from rules: PyVision-RL §3, Look Less, Reason More §4.2, FIGR §3.3."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from darkroom.train.rl import rewards
from darkroom.train.rl.judging.judges import Judges
from darkroom.train.rl.methods.base import RUN_OUT, Method, RolloutOutcome, RolloutScore, rate
from darkroom.train.runs import TrainError


@dataclass(frozen=True, slots=True)
class PyVisionMethod(Method, paper="pyvision"):
    """The accumulative tool reward. The released code trains on rollouts with errors, too, and pays for their calls."""

    variant: rewards.Variant = "paper"
    reward_per_call: float = 0.1
    mode: Literal["free", "no_libraries"] = "free"
    """The prompt; ``no_libraries`` has the rule of the printed one against cv2 and PIL (figure 8)."""
    sorting: bool = True
    """False: of an oversampled batch's groups with spread, the first are trained (figure 5, without sorting)."""

    def modes(self, n_rollouts: int) -> tuple[str, ...]:
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
        n_failed = outcome.n_calls - outcome.n_ok
        reward = rewards.pyvision(
            bool(correct), outcome.n_calls, n_failed=n_failed, per_call=self.reward_per_call, variant=self.variant
        )
        return RolloutScore(reward, correct, {"accuracy": correct, "tool_bonus": reward - correct})


@dataclass(frozen=True, slots=True)
class AdaptiveMethod(Method, paper="adaptive"):
    """A quarter of a group is forced to use tools, a quarter forbidden, a half free (4, 4 and 8 of 16). Weights are
    table A2's. ``forced``, ``forbidden`` and ``free`` are the parts of a group in each mode."""

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

    def __post_init__(self) -> None:
        self._aligned(correct=True, used_tool=True, necessary=True)
        if min(self.forced, self.forbidden, self.free) < 1:
            raise ValueError("a group needs forced, forbidden and free rollouts: each is at least 1")

    def modes(self, n_rollouts: int) -> tuple[str, ...]:
        """Divide the group into forced, forbidden and free. Raises ``TrainError`` for an indivisible group."""
        parts = {"forced": self.forced, "forbidden": self.forbidden, "free": self.free}
        n_parts = sum(parts.values())
        if n_rollouts % n_parts:
            what = "quarters" if n_parts == 4 else f"{n_parts} parts"
            modes = ", ".join(f"{n} {mode}" for mode, n in parts.items())
            problem = f"{self.name} divides a group into {what} ({modes}): {n_rollouts} rollouts cannot be"
            raise TrainError(f"{problem}; choose a multiple of {n_parts} for --generations")
        return tuple(mode for mode, n in parts.items() for _ in range(n * n_rollouts // n_parts))

    async def score(self, group: Sequence[RolloutOutcome], judges: Judges) -> list[RolloutScore]:
        rated = await rate(group, judges)
        flags = [outcome.used_tool for outcome in group if outcome.mode == "free"]
        steady = rewards.consistency_penalty(flags, gamma=self.gamma)
        prior = group[0].question.necessity_prior if self.necessity == "stored" else None
        # 0 where all rollouts of a mode broke: nothing speaks for tools
        with_tools, without = (
            fmean([right for outcome, right in rated if outcome.mode == mode] or [0.0])
            for mode in ("forced", "forbidden")
        )
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


@dataclass(frozen=True, slots=True)
class FigrMethod(Method, paper="figr"):
    """A drawing is an image that code showed without an error."""

    variant: rewards.Variant = "paper"
    by_suitability: bool = True
    """False: a drawing earns a whole point wherever it is."""
    visual_reward: bool = True
    """False: a drawing earns nothing (§4.3 and table 2, "w/o ARM")."""
    visual_feedback: bool = True
    """False: code runs and its drawings are paid for, but the model is shown only text (§4.3)."""

    @property
    def shows_images(self) -> bool:
        return self.visual_feedback

    async def score_one(self, outcome: RolloutOutcome, correct: float, judges: Judges) -> RolloutScore:
        formatted = rewards.formatted(outcome.text, protocol=outcome.protocol)
        suitable = outcome.question.suitable if self.by_suitability else True
        ran = [turn.observation for turn in outcome.rollout.rounds if turn.observation.status == "ok"]
        has_drawing = any(observation.images for observation in ran)
        if self.variant == "code":  # exactly one image where drawing is suitable, any code elsewhere
            one_image = any(len(observation.images) == 1 for observation in ran)
            has_drawing = one_image if outcome.question.suitable else bool(ran)
        earns = has_drawing and self.visual_reward
        reward = rewards.figr(bool(correct), bool(formatted), suitable=suitable, executed=earns, variant=self.variant)
        visual = {"drawn": float(has_drawing), "visual": reward - correct - formatted}
        return RolloutScore(reward, correct, {"accuracy": correct, "format": formatted, **visual})
