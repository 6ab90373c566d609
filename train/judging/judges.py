"""Judges of rollouts: questions that rewards and evaluation put to a policy, in votes, on the ledger.

    judge = open_judge(settings, home)                                  # train/judging/settings.py
    said = await answer("a scarlet coat", sample, judge)                # Opinion(score=1.0, votes=…)
    said = await evidence(sample.question, judge.pictures.add_pixels(crop), judge, n_votes=3)
    said.score                                                          # 0.8333…: clear, clear, partial

Every function takes the policy that votes and ``n_votes``. A vote that is no answer is no yes, and scores nothing.
What a model wrote is data, between fences (``pipelines/fences.py``). The same question about the same words or pixels
has the same seeds, so that it is paid for once, in whatever step or evaluation it comes up again. A judge that cannot
be asked raises ``JudgeDown``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from pipelines.digest import digest, seed_from
from pipelines.fences import harmless, nonce
from pipelines.grading import grade
from pipelines.grading.judged import grade_judged
from pipelines.judges.ballots import SCHEMA, yes_or_no
from pipelines.messages import Picture, message
from pipelines.policies import Completion, Policy, PolicyUnavailable, Turn
from pipelines.prompts import Prompt, bundled_prompt
from pipelines.records import Grader, ImageRef, Sample, Truth, Votes
from pipelines.rejects import Reason, RowFault
from pipelines.structured import json_objects
from pipelines.tasks import Task
from pipelines.voting import Ballot, poll
from train.faults import JudgeDown, TrainFault
from train.options import Rubric

CONCLUSION = bundled_prompt("judge_conclusion")
PROCESS = bundled_prompt("judge_process")
EVIDENCE = bundled_prompt("judge_evidence")
TARGET = bundled_prompt("judge_target")

CONCLUSION_CHARS = 500
"""How much of the thinking Thyme's consistency judge reads, from its end (appendix C.5.2)."""

PROCESS_CHARS = 30_000
"""Longer thinking earns nothing by its process, and is not sent: it is a loop, or more than a judge can take."""

MATCHES: Mapping[Rubric, Mapping[str, float]] = {
    "strict": {"clear": 1.0, "partial": 0.5, "none": 0.0},
    "paper": {"clear": 1.0, "partial": 0.5, "none": 0.25},
}
"""What a picture earns. CodeV's template 13.2 gives a quarter for no match at all, so that any crop pays."""

_RULED = frozenset({"choice", "number", "box"})
"""Graders that say all there is to say of an answer: no judge may overrule them."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What judges think: ``score`` 0..1, and the votes that it came from; None where nobody had to be asked."""

    score: float
    votes: Votes | None = None

    @property
    def says_yes(self) -> bool:
        """Whether most of a yes-or-no question's votes say yes; of a graded one, whether it is over a half."""
        return self.score > 0.5


async def answer(
    given: str | None, sample: Sample, policy: Policy, *, grader: Grader | None = None, n_votes: int = 1
) -> Opinion:
    """Whether ``given`` is the sample's answer: by rule, and where no rule says so by its meaning (Thyme §4.4, Result
    Reward). 1.0 or 0.0, by most votes.

    No answer is wrong, and costs nothing. A choice, a number and a box are for their rules alone.
    """
    if given is None:
        return Opinion(0.0)
    if grade(given, sample, grader).right:
        return Opinion(1.0)
    if sample.choices or (grader is not None and grader.kind in _RULED):
        return Opinion(0.0)
    with _asking(policy):
        judged = await grade_judged(given, sample, policy, n_votes=n_votes)
    return Opinion(float(judged.grade.right), judged.votes)


async def consistency(thought: str, answer: str, question: str, policy: Policy, *, n_votes: int = 1) -> Opinion:
    """Whether the answer follows from the end of the thinking (Thyme §4.4 and C.5.2): 1.0 or 0.0, by most votes.

    ``thought`` is all the thinking of a rollout, of which the last 500 characters are shown; no thinking and no answer
    are consistent with nothing, which costs nothing.
    """
    end = thought.strip()[-CONCLUSION_CHARS:]
    if not end or not answer.strip():
        return Opinion(0.0)
    slots = {"question": harmless(question), "thought": harmless(end), "answer": harmless(answer)}
    return await _yes_or_no(CONCLUSION, {**slots, "nonce": nonce(question, end, answer)}, (), policy, n_votes)


async def process(thought: str, question: str, policy: Policy, *, n_votes: int = 1) -> Opinion:
    """How good the whole thinking is, 0.1 to 1.0 (Thyme C.5.2, process reward); 0.0 for none, and for far too much.

    The mean of the grades for logic and text, of ten, over all votes.
    """
    if not thought.strip() or len(thought) > PROCESS_CHARS:
        return Opinion(0.0)
    slots = {"question": harmless(question), "thought": harmless(thought), "nonce": nonce(question, thought)}
    return await _graded(PROCESS, slots, (), policy, n_votes, _Grades, lambda found: (found.logic + found.text) / 20)


async def evidence(
    question: str, picture: ImageRef, policy: Policy, *, n_votes: int = 1, rubric: Rubric = "strict"
) -> Opinion:
    """How far a picture that a program made is evidence for the question: CodeV's tool judge (§4.3, template 13.2).

    It sees the question and the picture, never code or thought. 1.0, 0.5 or 0.0, the mean over all votes; ``rubric``
    ``paper`` gives 0.25 for none, as the printed template does. Of a round with several pictures the best one counts:
    CodeV rewards *any* useful evidence.
    """
    scores = MATCHES[rubric]
    slots = {"question": harmless(question)}
    return await _graded(EVIDENCE, slots, (picture,), policy, n_votes, _Match, lambda found: scores[found.match])


async def shows_target(question: str, picture: ImageRef, policy: Policy, *, n_votes: int = 1) -> Opinion:
    """Whether the picture clearly shows anything that the question names (CodeV appendix 8): 1.0 or 0.0, by most votes.

    A rollout is faithful by that protocol when this is so of any picture that it made.
    """
    return await _yes_or_no(TARGET, {"question": harmless(question)}, (picture,), policy, n_votes)


async def check_judge(policy: Policy) -> None:
    """Raises ``TrainFault`` when no vote could be had, before anything is trained."""
    try:
        await policy.check()
    except PolicyUnavailable as fault:
        raise TrainFault(f"the judge {policy.identity.model} cannot be asked: {fault}") from fault


class _Match(BaseModel):
    reason: str = ""
    match: Literal["clear", "partial", "none"]


class _Grades(BaseModel):
    reason: str = ""
    logic: int = Field(ge=1, le=10)
    text: int = Field(ge=1, le=10)


_Said = TypeVar("_Said", _Match, _Grades)


async def _yes_or_no(
    prompt: Prompt, slots: Mapping[str, str], pictures: tuple[ImageRef, ...], policy: Policy, n_votes: int
) -> Opinion:
    turn = _turn(prompt, slots, pictures, SCHEMA)
    with _asking(policy):
        votes = await poll(policy, turn, yes_or_no, n_votes=n_votes, what=prompt.name)
    return Opinion(float(votes.says_yes), votes)


async def _graded(
    prompt: Prompt,
    slots: Mapping[str, str],
    pictures: tuple[ImageRef, ...],
    policy: Policy,
    n_votes: int,
    form: type[_Said],
    score: Callable[[_Said], float],
) -> Opinion:
    scores: list[float] = []

    def read(said: Completion) -> Ballot:
        found = _last(said.text, form)
        scores.append(0.0 if found is None else score(found))
        return Ballot(None if found is None else scores[-1] > 0.5, "" if found is None else found.reason)

    turn = _turn(prompt, slots, pictures, form.model_json_schema())
    with _asking(policy):
        votes = await poll(policy, turn, read, n_votes=n_votes, what=prompt.name)
    return Opinion(fmean(scores), votes)


def _turn(prompt: Prompt, slots: Mapping[str, str], pictures: tuple[ImageRef, ...], schema: Mapping[str, Any]) -> Turn:
    system, user = prompt.render(**slots)
    messages = (message("system", system), message("user", *map(Picture, pictures), user))
    asked = digest([prompt.name, dict(slots), [picture.sha256 for picture in pictures]])
    seed = seed_from("judge", asked)
    stand_in = Sample(asked, "", "", "", pictures, slots["question"], (), "", Truth(), "")  # all that a judge may know
    return Turn(messages, (), seed, Task(asked, prompt.name, stand_in, pictures, {}, messages, seed), schema=schema)


def _last(text: str, form: type[_Said]) -> _Said | None:
    """The last JSON object of an answer that has this form: models reason first, and put fences around it."""
    for candidate in reversed(list(json_objects(text))):
        try:
            return form.model_validate(candidate)
        except ValidationError:
            continue
    return None


@contextmanager
def _asking(policy: Policy) -> Iterator[None]:
    try:
        yield
    except PolicyUnavailable as fault:
        raise JudgeDown(policy.identity.model, str(fault)) from fault
    except RowFault as fault:
        if fault.reason is not Reason.POLICY_FAILED:
            raise
        raise JudgeDown(policy.identity.model, fault.evidence) from fault
