"""Free text by a judge: whether a given answer means the expected one.

    judged = await grade_judged(answer, sample, policy, n_votes=3)
    judged.grade.right, judged.votes

What is spelled like the expected answer is right and costs nothing; what is no answer (``address.py``) is wrong and
costs nothing. About the rest the policy votes. The given answer is data, between fences (``pipelines/fences.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.digest import digest, seed_from
from pipelines.fences import harmless, nonce
from pipelines.grading.address import refusal
from pipelines.grading.base import Grade, graded
from pipelines.grading.rules import MAX_ANSWER_CHARS
from pipelines.grading.words import same_words
from pipelines.judges.ballots import SCHEMA, yes_or_no
from pipelines.messages import message
from pipelines.policies.base import Policy, Turn
from pipelines.prompts import bundled_prompt
from pipelines.records import Sample, Votes
from pipelines.tasks import Task, question_text
from pipelines.voting import poll

PROMPT = bundled_prompt("judge_answer")


@dataclass(frozen=True, slots=True)
class Judged:
    """A grade, and the votes that it came from; None where nobody was asked."""

    grade: Grade
    votes: Votes | None = None


async def grade_judged(given: str, sample: Sample, policy: Policy, *, n_votes: int = 1) -> Judged:
    """Whether ``given`` means the sample's answer, by most of ``n_votes``; a vote that is no answer is not a yes.

    Raises ``RowFault`` (policy_failed) when a vote cannot be had.
    """
    if len(given) <= MAX_ANSWER_CHARS and same_words(given, sample.answer):
        return Judged(graded(True, "judged", given, sample, how="spelled the same"))
    if why := refusal(given, sample.answer):
        return Judged(graded(False, "judged", given, sample, how=f"no judge asked: {why}"))
    votes = await poll(policy, meaning_turn(given, sample), yes_or_no, n_votes=n_votes, what="judge of an answer")
    return Judged(graded(votes.says_yes, "judged", given, sample, how=str(votes), score=round(votes.share, 4)), votes)


def meaning_turn(given: str, sample: Sample) -> Turn:
    """What a judge is asked, without a picture: the meaning of two texts."""
    system, user = PROMPT.render(**meaning_slots(given, sample))
    messages = (message("system", system), message("user", user))
    seed = seed_from("grade", sample.sample_id, digest(given))
    task = Task(sample.sample_id, PROMPT.name, sample, (), {}, messages, seed)
    return Turn(messages, (), seed, task, schema=SCHEMA)


def meaning_slots(given: str, sample: Sample) -> Mapping[str, str]:
    """What the prompt ``judge_answer`` is filled with."""
    return {
        "question": harmless(question_text(sample)),
        "expected": harmless(sample.answer),
        "given": harmless(given),
        "nonce": nonce(sample.sample_id, given),
    }
