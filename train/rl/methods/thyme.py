"""Thyme §4: result, consistency and format; GRPO-ATS."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from darkroom.pipelines.models.tasks import question_text
from darkroom.train.rl import rewards
from darkroom.train.rl.judging.judges import Judges, consistency, process
from darkroom.train.rl.methods.base import Method, RolloutOutcome, RolloutScore
from darkroom.train.rl.settings import MethodDefaults

Addition = Literal["consistency", "code", "process", "none"]


@dataclass(frozen=True, slots=True)
class ThymeMethod(Method):
    """``addition`` is the further reward of a right answer: its consistency, or an ablation (appendix C.5.2)."""

    addition: Addition = "consistency"
    variant: rewards.Variant = "paper"

    name: ClassVar[str] = "thyme"
    says: ClassVar[str] = "result x (1 + 0.5 consistency) + 0.5 format; temperature 0 inside code"
    protocol: ClassVar[str] = "thyme"
    terms: ClassVar[MethodDefaults] = MethodDefaults(
        learning_rate=5e-7,
        generations=4,
        max_rounds=4,
        beta=0.001,
        repetition_penalty=1.05,
        scale="group",
        loss_type="group",
        adaptive_temperature=True,
    )
    sources: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("learning_rate", "epochs", "generations", "beta", "repetition_penalty"), "appendix C.1"),
        **dict.fromkeys(("loss_type", "scale"), "§4.2"),
        **dict.fromkeys(("temperature", "adaptive_temperature"), "§4.3"),
        "max_rounds": "the released code",
        "batch": "256 (appendix C.1)",
    }
    wants_judge: ClassVar[str] = "whether an answer means the expected one, and follows from its thoughts (without: 0)"

    async def score_one(self, outcome: RolloutOutcome, correct: float, judges: Judges) -> RolloutScore:
        """Score by Thyme §4.4."""
        added = await self._added(outcome, judges) if correct else 0.0  # it would count for nothing
        formatted = rewards.formatted(outcome.text, protocol=outcome.protocol)
        is_correct = None if outcome.answer is None else bool(correct)
        result = rewards.thyme_result(is_correct, variant=self.variant)
        if self.addition == "code":
            reward = rewards.thyme_code(result, added, formatted, variant=self.variant)
        else:
            reward = rewards.thyme(result, added, formatted)
        return RolloutScore(reward, correct, {"result": result, self.addition: added, "format": formatted})

    async def _added(self, outcome: RolloutOutcome, judges: Judges) -> float:
        if self.addition == "code":
            return rewards.executed_share(outcome.n_ok, outcome.n_calls)
        if self.addition == "none" or judges.policy is None:
            return 0.0
        question = question_text(outcome.question.sample)
        if self.addition == "process":
            return (await process(outcome.thought, question, judges.policy, n_votes=judges.n_votes)).score
        answer = outcome.answer or ""
        return (await consistency(outcome.thought, answer, question, judges.policy, n_votes=judges.n_votes)).score
