"""FIGR §3.3: a right answer earns a whole point for a drawing where one helps, and little where none does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from darkroom.train.rl import rewards
from darkroom.train.rl.judging.judges import Judges
from darkroom.train.rl.methods.base import Method, RolloutOutcome, RolloutScore
from darkroom.train.rl.settings import MethodDefaults


@dataclass(frozen=True, slots=True)
class FigrMethod(Method):
    """A drawing is an image that code showed without an error."""

    variant: rewards.Variant = "paper"
    by_suitability: bool = True
    """False: a drawing earns a whole point wherever it is."""
    visual_reward: bool = True
    """False: a drawing earns nothing (§4.3 and table 2, "w/o ARM")."""
    visual_feedback: bool = True
    """False: code runs and its drawings are paid for, but the model is shown only text (§4.3)."""

    name: ClassVar[str] = "figr"
    says: ClassVar[str] = "answer, format, and a drawing where the question's label says that one helps"
    protocol: ClassVar[str] = "tool_call"
    terms: ClassVar[MethodDefaults] = MethodDefaults(
        learning_rate=1e-6, generations=8, max_rounds=3, max_tokens=32_768, temperature=0.7, loss_type="grpo"
    )
    sources: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("max_rounds", "max_tokens", "temperature"), "§4.1"),
        "loss_type": "eq. 9",
        "scale": "eq. 8",
        "beta": "eq. 9 has the term, its weight is unpublished",
    }

    @property
    def shows_images(self) -> bool:
        """True unless visual feedback is off."""
        return self.visual_feedback

    async def score_one(self, outcome: RolloutOutcome, correct: float, judges: Judges) -> RolloutScore:
        """Score by FIGR eqs. 4 to 6 and 11."""
        formatted = rewards.formatted(outcome.text, protocol=outcome.protocol)
        suitable = outcome.question.suitable if self.by_suitability else True
        has_drawing = self._executed(outcome)
        earns = has_drawing and self.visual_reward
        reward = rewards.figr(bool(correct), bool(formatted), suitable=suitable, executed=earns, variant=self.variant)
        visual = {"drawn": float(has_drawing), "visual": reward - correct - formatted}
        return RolloutScore(reward, correct, {"accuracy": correct, "format": formatted, **visual})

    def _executed(self, outcome: RolloutOutcome) -> bool:
        """True for a drawing; the released code wants exactly one where drawing is suitable, and any code elsewhere."""
        ran = [turn.observation for turn in outcome.rollout.rounds if turn.observation.status == "ok"]
        if self.variant == "paper":
            return any(observation.images for observation in ran)
        return any(len(observation.images) == 1 for observation in ran) if outcome.question.suitable else bool(ran)
