"""CodeV §4, TAPO: what each program showed is judged, beside the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from train.rl import rewards
from train.rl.judging.judges import Judges
from train.rl.methods.base import Method, RolloutOutcome, RolloutScore, correct_of, tool_scores
from train.rl.settings import MethodDefaults


@dataclass(frozen=True, slots=True)
class CodeVMethod(Method):
    """The paper demands |weight_tool| < |weight_accuracy| and names neither; figure 9 shows a format of at most 0.3."""

    weight_accuracy: float = 1.0
    weight_tool: float = 0.5
    weight_format: float = 0.0

    name: ClassVar[str] = "codev"
    says: ClassVar[str] = "answer and, program by program, whether what it showed is evidence"
    protocol: ClassVar[str] = "thyme"
    # §5.1: learning rate, 8 rollouts, temperature 1; eq. 3: a baseline, no standard deviation
    terms: ClassVar[MethodDefaults] = MethodDefaults(learning_rate=1e-6, generations=8, max_rounds=4)
    wants_judge: ClassVar[str] = "whether a picture is evidence for the question (without: redlines alone)"

    async def score(self, group: Sequence[RolloutOutcome], judges: Judges) -> list[RolloutScore]:
        """CodeV eqs. 5 and 6."""
        correct = await correct_of(group, judges)
        tools = await asyncio.gather(*(tool_scores(judges, outcome) for outcome in group))
        return [self._scored(*rollout) for rollout in zip(group, correct, tools, strict=True)]

    def _scored(self, outcome: RolloutOutcome, correct: float, tools: Sequence[float]) -> RolloutScore:
        formatted = rewards.formatted(outcome.text, protocol=outcome.protocol)
        reward = rewards.tapo(
            correct,
            tools,
            weight_accuracy=self.weight_accuracy,
            weight_tool=self.weight_tool,
            format=self.weight_format * formatted,
        )
        redlined = sum(score < 0 for score in tools) / len(tools) if tools else 0.0
        parts = {"accuracy": correct, "tool": fmean(tools) if tools else 0.0, "redlines": redlined, "format": formatted}
        return RolloutScore(reward, correct, parts)
