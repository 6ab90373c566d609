"""How the answer of a rollout is scored: by rule, by a judge where only a judge can tell, by likeness (ANLS)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.grading import grade
from pipelines.grading.anls import similarity
from pipelines.grading.judged import grade_judged
from pipelines.policies import Policy
from pipelines.rollout import Rollout
from train.evaluation.questions import Question

ANLS_THRESHOLD = 0.5
"""Less alike than this counts nothing (Biten et al. 2019, eq. 1; InfographicVQA §5)."""


@dataclass(frozen=True, slots=True)
class Score:
    """Whether an answer counts as right, its ``value`` 0..1 as the benchmark counts it, and why, for a person."""

    right: bool
    value: float
    detail: str


async def score(made: Rollout, question: Question, judge: Policy | None = None) -> Score:
    """A rollout without an answer is wrong. ``judge`` reads free text; without one it must be spelled the same.

    Raises ``RowFault`` (policy_failed) when the judge's vote cannot be had.
    """
    if made.fault is not None:
        return Score(False, 0.0, str(made.fault))
    if question.scoring == "anls":
        value = anls(made.answer, question.accepted)
        return Score(value > 0, value, f"{made.answer[:120]!r}: ANLS {value:.3f} of {len(question.accepted)} accepted")
    if question.grader is not None and question.grader.kind == "judged" and judge is not None:
        found = (await grade_judged(made.answer, question.sample, judge)).grade
    else:
        found = await asyncio.to_thread(grade, made.answer, question.sample, question.grader)
    return Score(found.right, float(found.right), found.detail)


def anls(given: str, accepted: Sequence[str]) -> float:
    """Likeness 0..1 to the nearest accepted answer; below ``ANLS_THRESHOLD`` it is 0 (InfographicVQA's metric)."""
    best = max((similarity(given, one) for one in accepted), default=0.0)
    return best if best >= ANLS_THRESHOLD else 0.0
