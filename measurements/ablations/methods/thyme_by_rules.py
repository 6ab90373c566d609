"""Thyme whose judge of thoughts is a rule, for consistency and for the quality of the process (appendix C.5.2)."""

import re
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from darkroom.pipelines.demo.images.targets import ENAMELS
from darkroom.train.rl.judging.judges import CONCLUSION_CHARS, Judges
from darkroom.train.rl.methods.base import RolloutOutcome
from darkroom.train.rl.methods.judged import ThymeMethod

_WORD, _SENTENCE_END = re.compile(r"[a-z]+"), re.compile(r"[.!?;:\n]+(?:\s+|\Z)")


@dataclass(frozen=True, slots=True)
class ThymeByRules(ThymeMethod):
    """The world's answers are colours: a thought that ends with the answer's colour and no other is consistent."""

    name: ClassVar[str] = "thyme_by_rules"
    says: ClassVar[str] = "Thyme's additions to the reward of a right answer, by rules instead of a judge"

    async def _added(self, outcome: RolloutOutcome, judges: Judges) -> float:
        if self.addition == "consistency":
            return float(is_consistent(outcome.thought, outcome.answer or ""))
        if self.addition == "process":
            thoughts = [turn.thought for turn in outcome.rollout.rounds] + [outcome.rollout.final_thought]
            return process_quality(thoughts)
        return await super(ThymeByRules, self)._added(outcome, judges)  # slots: no `super()` without arguments


def is_consistent(thought: str, answer: str) -> bool:
    """True if the colours in the end of the thinking are the answer alone."""
    named = set(_WORD.findall(thought.strip()[-CONCLUSION_CHARS:].casefold())) & ENAMELS.keys()
    return named == {answer.strip().casefold()}


def process_quality(thoughts: list[str]) -> float:
    """0..1: the mean of two grades, how many turns have a thought, and how many sentences are no repetition."""
    sentences = [
        sentence.strip() for thought in thoughts for sentence in _SENTENCE_END.split(thought) if sentence.strip()
    ]
    if not sentences:
        return 0.0
    return fmean([fmean(bool(thought.strip()) for thought in thoughts), len(set(sentences)) / len(sentences)])


method = ThymeByRules()
