"""Methods whose reward asks a judge for more than the answer: Thyme §4 with GRPO-ATS, CodeV §4 (TAPO)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

from darkroom.pipelines.models.messages import pixel_ref
from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.records import Round
from darkroom.train.rl import rewards
from darkroom.train.rl.judging.code_rules import measured_lines, redlines, tool_scores
from darkroom.train.rl.judging.judges import Judges, consistency, evidence, process, text_evidence
from darkroom.train.rl.methods.base import Method, RolloutOutcome, RolloutScore

Addition = Literal["consistency", "code", "process", "none"]


@dataclass(frozen=True, slots=True)
class ThymeMethod(Method, paper="thyme"):
    """``addition`` is the further reward of a right answer: its consistency, or an ablation (appendix C.5.2)."""

    addition: Addition = "consistency"
    variant: rewards.Variant = "paper"

    async def score_one(self, outcome: RolloutOutcome, correct: float, judges: Judges) -> RolloutScore:
        added = await self._added(outcome, judges) if correct else 0.0  # it would count for nothing
        formatted = rewards.formatted(outcome.text, protocol=outcome.protocol)
        result = rewards.thyme_result(None if outcome.answer is None else bool(correct), variant=self.variant)
        if self.addition == "code":
            reward = rewards.thyme_code(result, added, formatted, variant=self.variant)
        else:
            reward = rewards.thyme(result, added, formatted)
        return RolloutScore(reward, correct, {"result": result, self.addition: added, "format": formatted})

    async def _added(self, outcome: RolloutOutcome, judges: Judges) -> float:
        if self.addition == "code":
            return rewards.executed_share(outcome.n_ok, outcome.n_calls)
        if self.addition == "consistency":
            return await _follows(outcome, judges)
        if self.addition == "none" or judges.policy is None:
            return 0.0
        question = question_text(outcome.question.sample)
        return (await process(outcome.thought, question, judges.policy, n_votes=judges.n_votes)).score


async def _follows(outcome: RolloutOutcome, judges: Judges) -> float:
    """Judge if the answer follows from its thoughts; 0.0 without a judge."""
    if judges.policy is None:
        return 0.0
    question, answer = question_text(outcome.question.sample), outcome.answer or ""
    return (await consistency(outcome.thought, answer, question, judges.policy, n_votes=judges.n_votes)).score


@dataclass(frozen=True, slots=True)
class CodeVMethod(Method, paper="codev"):
    """Every round with code has a tool score: a redline's, else the evidence of its best image or measured output. The
    paper demands ``|weight_tool| < |weight_accuracy|`` and names neither; eq. 5 lacks a format (figure 9: at most 0.3).
    With a ``weight_tool`` of 0 no judge is asked about images."""

    weight_accuracy: float = 1.0
    weight_tool: float = 0.5
    weight_consistency: float = 0.0
    """Weight of a right answer that follows from its thoughts, by a judge (table 2, "+ Consistency", as in Thyme)."""
    only_visual_search: bool = True
    """Elsewhere only redlines count (§4.3); a question is visual search unless its row says that it is not."""
    text_evidence: bool = True
    """Printed measurements of a round without an image can be evidence (§4.3)."""

    def __post_init__(self) -> None:
        rewards.tapo(0.0, (), weight_accuracy=self.weight_accuracy, weight_tool=self.weight_tool)

    async def score(self, group: Sequence[RolloutOutcome], judges: Judges) -> list[RolloutScore]:
        """Score a group; all rewards are 0 where no judge sees evidence and no rollout is right. Redlines alone would
        train code away there: only rollouts with code can have one."""
        scores = await super(CodeVMethod, self).score(group, judges)  # slots: no `super()` without arguments
        if judges.policy is not None or any(score.correct for score in scores):
            return scores
        return [replace(score, reward=0.0) for score in scores]

    async def score_one(self, outcome: RolloutOutcome, correct: float, judges: Judges) -> RolloutScore:
        rounds = outcome.rollout.rounds
        crossed = redlines(rounds, [pixel_ref(image) for image in outcome.question_images])
        is_dense = self.weight_tool and not (self.only_visual_search and outcome.question.visual_search is False)
        to_judge = [turn if is_dense and not lines else None for lines, turn in zip(crossed, rounds, strict=True)]
        judged = await asyncio.gather(*(self._evidence(judges, outcome, turn) for turn in to_judge))
        tools = tool_scores(crossed, judged)
        reward = rewards.tapo(correct, tools, weight_accuracy=self.weight_accuracy, weight_tool=self.weight_tool)
        consistent = await _follows(outcome, judges) if correct and self.weight_consistency else 0.0
        reward += self.weight_consistency * consistent
        parts = {
            "accuracy": correct,
            "tool": fmean(tools) if tools else 0.0,
            "redlines": sum(score < 0 for score in tools) / len(tools) if tools else 0.0,
            "format": rewards.formatted(outcome.text, protocol=outcome.protocol),
        }
        if self.weight_consistency:
            parts["consistency"] = consistent
        return RolloutScore(reward, correct, parts)

    async def _evidence(self, judges: Judges, outcome: RolloutOutcome, turn: Round | None) -> float | None:
        if turn is None or turn.observation.status != "ok" or judges.policy is None or judges.images is None:
            return None
        question, observation = outcome.question.sample.question, turn.observation
        terms: dict[str, Any] = {"policy": judges.policy, "n_votes": judges.n_votes, "rubric": judges.rubric}
        if observation.images:
            images = [judges.images.add_pixels(outcome.pixels[image.sha256]) for image in observation.images]
            opinions = await asyncio.gather(*(evidence(question, image, **terms) for image in dict.fromkeys(images)))
            return max(opinion.score for opinion in opinions)
        output = measured_lines(turn.code, observation.text) if self.text_evidence else ""
        return (await text_evidence(question, output, **terms)).score if output else None
