"""Free text by a judge: whether a given answer means the expected one.

    judged = await grade_judged(answer, sample, policy, n_votes=3)
    judged.grade.right, judged.votes

What is spelled like the expected answer is right and costs nothing; what addresses the judge is wrong and
costs nothing. About the rest the policy votes. The given answer is data, between fences
(``pipelines/models/prompts/__init__.py``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from darkroom.pipelines.models.policies.base import CompletionRequest, Policy
from darkroom.pipelines.models.prompts import bundled_prompt, escaped, nonce
from darkroom.pipelines.models.self_consistency import collect_votes
from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.records import Sample, Votes
from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.verification.grading.grade import MAX_ANSWER_CHARS, Grade, graded
from darkroom.pipelines.verification.grading.judge_injection import rejection_reason
from darkroom.pipelines.verification.grading.text_match import same_words
from darkroom.pipelines.verification.judges.policy import judge_turn, yes_or_no

PROMPT = bundled_prompt("judge_answer")


@dataclass(frozen=True, slots=True)
class JudgedGrade:
    """A grade, and the votes that it came from; None where no judge was called."""

    grade: Grade
    votes: Votes | None = None


async def grade_judged(answer: str, sample: Sample, policy: Policy, *, n_votes: int = 1) -> JudgedGrade:
    """Whether ``answer`` means the sample's answer, by most of ``n_votes``; a vote that is no answer is not a yes.

    Raises ``RowError`` (policy_failed) when a vote cannot be had.
    """
    if len(answer) <= MAX_ANSWER_CHARS and same_words(answer, sample.answer):
        return JudgedGrade(graded(True, "judged", answer, sample, how="spelled the same"))
    if why := rejection_reason(answer, sample.answer):
        return JudgedGrade(graded(False, "judged", answer, sample, how=f"no judge asked: {why}"))
    votes = await collect_votes(
        policy, answer_turn(answer, sample), yes_or_no, n_votes=n_votes, what="judge of an answer"
    )
    return JudgedGrade(
        graded(votes.says_yes, "judged", answer, sample, how=str(votes), score=round(votes.share, 4)), votes
    )


def answer_turn(answer: str, sample: Sample) -> CompletionRequest:
    """What a judge is asked, without an image: the meaning of two texts."""
    seed = seed_from("grade", sample.sample_id, digest(answer))
    return judge_turn(PROMPT, answer_slots(answer, sample), sample, row=sample.sample_id, seed=seed)


def answer_slots(answer: str, sample: Sample) -> Mapping[str, str]:
    """What the prompt ``judge_answer`` is filled with."""
    return {
        "question": escaped(question_text(sample)),
        "expected": escaped(sample.answer),
        "given": escaped(answer),
        "nonce": nonce(sample.sample_id, answer),
    }
