"""What methods ask judges of a rollout, and what counts where there is no judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines.images import ImageStore
from pipelines.policies.base import Policy
from pipelines.records import Round
from pipelines.tasks import question_text
from train import rewards
from train.judging import judges as judge
from train.judging.redlines import redlines
from train.judging.redlines import tool_scores as scores_of
from train.options import Rubric
from train.rollouts.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Judges:
    """Who is asked: nobody, or one policy, whose votes are counted. Pictures reach it by its store."""

    policy: Policy | None = None
    pictures: ImageStore | None = None
    n_votes: int = 1
    rubric: Rubric = "strict"
    forget: Callable[[], None] = lambda: None
    """Empties the store, when a batch is scored."""


async def correctness(judges: Judges, outcome: Outcome) -> float:
    """1.0 for the right answer: by its grader's rule, else, where no rule has the last word, by its meaning."""
    sample, grader = outcome.asked.sample, outcome.asked.grader
    right = await asyncio.to_thread(rewards.correctness, outcome.answer, sample, grader)
    if right or judges.policy is None:
        return right
    said = await judge.answer(outcome.answer, sample, judges.policy, grader=grader, n_votes=judges.n_votes)
    return said.score


async def consistency(judges: Judges, outcome: Outcome) -> float:
    """Whether the answer follows from the thoughts; 0 without a judge."""
    if judges.policy is None:
        return 0.0
    question = question_text(outcome.asked.sample)
    said = await judge.consistency(
        outcome.thought, outcome.answer or "", question, judges.policy, n_votes=judges.n_votes
    )
    return said.score


async def process(judges: Judges, outcome: Outcome) -> float:
    """How good the thinking is; 0 without a judge."""
    if judges.policy is None:
        return 0.0
    question = question_text(outcome.asked.sample)
    return (await judge.process(outcome.thought, question, judges.policy, n_votes=judges.n_votes)).score


async def tool_scores(judges: Judges, outcome: Outcome) -> tuple[float, ...]:
    """One per program: a redline's, else how far the best of its pictures is evidence; 0 where nobody judged."""
    found = redlines(outcome.rollout.rounds, outcome.question_refs)
    asked = [
        None if crossed else _evidence(judges, outcome, turn)
        for crossed, turn in zip(found, outcome.rollout.rounds, strict=True)
    ]
    answers = iter(await asyncio.gather(*(question for question in asked if question is not None)))
    return scores_of(found, [None if question is None else next(answers) for question in asked])


async def _evidence(judges: Judges, outcome: Outcome, turn: Round) -> float | None:
    if judges.policy is None or judges.pictures is None or not turn.observation.images:
        return None
    policy, question = judges.policy, outcome.asked.sample.question
    shown = [judges.pictures.add_pixels(outcome.pixels[image.sha256]) for image in turn.observation.images]
    said: Sequence[judge.Opinion] = await asyncio.gather(
        *(
            judge.evidence(question, picture, policy, n_votes=judges.n_votes, rubric=judges.rubric)
            for picture in dict.fromkeys(shown)
        )
    )
    return max(opinion.score for opinion in said)
