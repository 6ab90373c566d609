"""Judges of rollouts: questions of rewards and evaluation to a policy, answered by votes on the ledger.

    judge = open_judge(JudgeSettings.for_training(), home)              # train/rl/judging/judge_config.py
    opinion = await answer("a scarlet coat", sample, judge)             # Opinion(score=1.0, votes=…)
    opinion = await evidence(sample.question, judge.images.add_pixels(crop), judge, n_votes=3)
    opinion.score                                                       # 0.8333…: clear, clear, partial

Every function takes the policy that votes and ``n_votes``. A vote that is no answer is no yes, and scores nothing.
Text of a model is data, between fences (``pipelines/models/prompts/__init__.py``). The same question about the same
text or pixels has the same seeds, and is paid for once in all steps and evaluations. ``JudgeDown``: none answers.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field

from darkroom.pipelines.models.policies import Completion, CompletionRequest, Policy, PolicyUnavailable
from darkroom.pipelines.models.prompts import Prompt, bundled_prompt, escaped, nonce
from darkroom.pipelines.models.self_consistency import Vote, collect_votes
from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.records import Grader, ImageRef, Sample, Votes
from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import bare_sample
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.grading import grade
from darkroom.pipelines.verification.grading.judged import grade_judged, rejection_reason
from darkroom.pipelines.verification.judges.judge import SCHEMA, judge_turn, last_vote, yes_or_no
from darkroom.sandbox.errors import raised_as
from darkroom.train.rl.settings import Rubric
from darkroom.train.runs import JudgeDown, TrainError

CONCLUSION, PROCESS, EVIDENCE, EVIDENCE_TEXT, TARGET, SHARE = (
    bundled_prompt(f"judge_{name}")
    for name in ("conclusion", "process", "evidence", "evidence_text", "target", "share")
)
CONCLUSION_CHARS = 500
"""Length of the end of the thinking that Thyme's consistency judge reads (appendix C.5.2)."""
OUTPUT_CHARS = 4_000
"""Length of the output that the judge of evidence reads."""
PROCESS_CHARS = 30_000
"""Longer thinking is not sent and scores 0: it is a loop, or exceeds the judge's context."""
MATCHES: Mapping[Rubric, Mapping[str, float]] = {
    "strict": {"clear": 1.0, "partial": 0.5, "none": 0.0},
    "paper": {"clear": 1.0, "partial": 0.5, "none": 0.25},
}
"""The score of an image. CodeV's template 13.2 gives a quarter for no match, so that any crop pays."""
_RULED = frozenset({"choice", "number", "box"})
"""Graders whose rules are final: no judge may overrule them."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """A judge's score, 0..1, and its votes; None where no vote was needed."""

    score: float
    votes: Votes | None = None

    @property
    def says_yes(self) -> bool:
        """True if most of a yes-or-no question's votes say yes, or a graded one is over a half."""
        return self.score > 0.5


@dataclass(frozen=True, slots=True)
class Judges:
    """The judge of a training: none, or one policy with its votes. It reads images from ``images``."""

    policy: Policy | None = None
    images: ImageStore | None = None
    n_votes: int = 1
    rubric: Rubric = "strict"
    forget: Callable[[], None] = lambda: None
    """Called when a batch is scored: empties the store."""


async def answer(
    text: str | None, sample: Sample, policy: Policy, *, grader: Grader | None = None, n_votes: int = 1
) -> Opinion:
    """Grade ``text`` as the sample's answer, by rule and else by its meaning (Thyme §4.4, Result Reward): 1.0 or 0.0,
    by most votes. No answer is wrong, and costs nothing. A choice, a number and a box are for their rules alone."""
    if text is None:
        return Opinion(0.0)
    if grade(text, sample, grader).right:
        return Opinion(1.0)
    if sample.choices or (grader is not None and grader.kind in _RULED):
        return Opinion(0.0)
    with _judge_errors(policy):
        judged = await grade_judged(text, sample, policy, n_votes=n_votes)
    return Opinion(float(judged.grade.right), judged.votes)


async def answer_share(text: str, sample: Sample, policy: Policy, *, n_votes: int = 1) -> Opinion:
    """Grade the part of the sample's answer that ``text`` states: 0.0 to 1.0 in tenths, the mean of all votes (MM-Vet,
    §3.2). In the sample's answer ``<AND>`` stands between parts that must all be there, ``<OR>`` between alternatives.
    Text that addresses the judge scores nothing, and costs nothing."""
    if not text.strip() or rejection_reason(text, sample.answer):
        return Opinion(0.0)
    expected = sample.answer.replace("<AND>", " AND ").replace("<OR>", " OR ")
    slots = {"question": escaped(question_text(sample)), "expected": escaped(expected), "given": escaped(text)}
    slots["nonce"] = nonce(sample.sample_id, text)
    return await _graded(SHARE, slots, policy, n_votes, form=_ShareGrade, score=lambda grade: grade.tenths / 10)


async def consistency(thought: str, answer: str, question: str, policy: Policy, *, n_votes: int = 1) -> Opinion:
    """Judge if the answer follows from the end of the thinking (Thyme §4.4 and C.5.2): 1.0 or 0.0, by most votes. The
    judge reads the last 500 characters of ``thought``. Without thinking or answer it is 0.0, which costs nothing."""
    end = thought.strip()[-CONCLUSION_CHARS:]
    if not end or not answer.strip():
        return Opinion(0.0)
    slots = {"question": escaped(question), "thought": escaped(end), "answer": escaped(answer)}
    return await _yes_or_no(CONCLUSION, {**slots, "nonce": nonce(question, end, answer)}, policy, n_votes)


async def process(thought: str, question: str, policy: Policy, *, n_votes: int = 1) -> Opinion:
    """Grade the whole thinking, 0.1 to 1.0 (Thyme C.5.2, process reward); 0.0 for none, and for far too much. The mean
    of the grades for logic and text, of ten, over all votes."""
    if not thought.strip() or len(thought) > PROCESS_CHARS:
        return Opinion(0.0)
    slots = {"question": escaped(question), "thought": escaped(thought), "nonce": nonce(question, thought)}
    return await _graded(
        PROCESS, slots, policy, n_votes, form=_ThoughtGrades, score=lambda grade: (grade.logic + grade.text) / 20
    )


async def text_evidence(
    question: str, output: str, policy: Policy, *, n_votes: int = 1, rubric: Rubric = "strict"
) -> Opinion:
    """Grade printed output as evidence for the question: coordinates, simple statistics (CodeV §4.3). The judge sees
    the question and the first ``OUTPUT_CHARS`` characters of the output, never code or thought."""
    text = output.strip()[:OUTPUT_CHARS]
    slots = {"question": escaped(question), "output": escaped(text), "nonce": nonce(question, text)}
    return await _graded(
        EVIDENCE_TEXT, slots, policy, n_votes, form=_EvidenceGrade, score=lambda grade: MATCHES[rubric][grade.match]
    )


async def evidence(
    question: str, image: ImageRef, policy: Policy, *, n_votes: int = 1, rubric: Rubric = "strict"
) -> Opinion:
    """Grade an image from code as evidence for the question: CodeV's tool judge (§4.3, template 13.2), which never sees
    code or thought. The score is the mean of all votes' ``MATCHES``; a round with several images has that of the best
    one: CodeV rewards *any* useful evidence."""
    slots, scores = {"question": escaped(question)}, MATCHES[rubric]
    return await _graded(
        EVIDENCE, slots, policy, n_votes, form=_EvidenceGrade, score=lambda grade: scores[grade.match], images=(image,)
    )


async def shows_target(question: str, image: ImageRef, policy: Policy, *, n_votes: int = 1) -> Opinion:
    """Judge if the image clearly shows anything the question names (CodeV appendix 8): 1.0 or 0.0, by most votes."""
    return await _yes_or_no(TARGET, {"question": escaped(question)}, policy, n_votes, images=(image,))


async def check_judge(policy: Policy) -> None:
    """Raise ``TrainError`` for an unavailable judge, before anything is trained."""
    name = policy.identity.model
    with raised_as(lambda error: TrainError(f"the judge {name} cannot be asked: {error}"), PolicyUnavailable):
        await policy.check()


class _EvidenceGrade(BaseModel):
    reason: str = ""
    match: Literal["clear", "partial", "none"]


class _ThoughtGrades(BaseModel):
    reason: str = ""
    logic: int = Field(ge=1, le=10)
    text: int = Field(ge=1, le=10)


class _ShareGrade(BaseModel):
    reason: str = ""
    tenths: int = Field(ge=0, le=10)


_Grade = TypeVar("_Grade", _EvidenceGrade, _ThoughtGrades, _ShareGrade)


async def _yes_or_no(
    prompt: Prompt, slots: Mapping[str, str], policy: Policy, n_votes: int, *, images: tuple[ImageRef, ...] = ()
) -> Opinion:
    with _judge_errors(policy):
        votes = await collect_votes(policy, _turn(prompt, slots, images), yes_or_no, n_votes=n_votes, what=prompt.name)
    return Opinion(float(votes.says_yes), votes)


async def _graded(
    prompt: Prompt,
    slots: Mapping[str, str],
    policy: Policy,
    n_votes: int,
    *,
    form: type[_Grade],
    score: Callable[[_Grade], float],
    images: tuple[ImageRef, ...] = (),
) -> Opinion:
    scores: list[float] = []

    def read(completion: Completion) -> Vote:
        grade = last_vote(completion.text, form)
        scores.append(0.0 if grade is None else score(grade))
        return Vote(None if grade is None else scores[-1] > 0.5, "" if grade is None else grade.reason)

    turn = _turn(prompt, slots, images, form.model_json_schema())
    with _judge_errors(policy):
        votes = await collect_votes(policy, turn, read, n_votes=n_votes, what=prompt.name)
    return Opinion(fmean(scores), votes)


def _turn(
    prompt: Prompt, slots: Mapping[str, str], images: tuple[ImageRef, ...], schema: Mapping[str, Any] = SCHEMA
) -> CompletionRequest:
    row = digest([prompt.name, dict(slots), [image.sha256 for image in images]])
    stand_in = bare_sample(row, slots["question"], images)  # all that a judge may see
    return judge_turn(prompt, slots, stand_in, row=row, seed=seed_from("judge", row), images=images, schema=schema)


@contextmanager
def _judge_errors(policy: Policy) -> Iterator[None]:
    try:
        yield
    except PolicyUnavailable as error:
        raise JudgeDown(policy.identity.model, str(error)) from error
    except RowError as error:
        if error.reason is not Reason.POLICY_FAILED:
            raise
        raise JudgeDown(policy.identity.model, error.evidence) from error
