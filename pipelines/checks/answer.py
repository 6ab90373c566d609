"""Checks on the answer."""

from __future__ import annotations

from pipelines.answers import matches
from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, judged, passed
from pipelines.checks.votes import by_votes
from pipelines.grading import grade
from pipelines.grading.address import refusal
from pipelines.grading.judged import PROMPT, meaning_slots
from pipelines.judges.base import Judge, Question


@check()
def answer_matches(case: Case) -> Verdict:
    """The answer is the sample's."""
    sample, given = case.sample, case.trajectory.answer
    if matches(given, sample.answer, sample.choices):
        return passed()
    return failed(Flaw.WRONG_ANSWER, f"answered {given!r}, expected {sample.answer!r}")


@check()
def answer_verified(case: Case) -> Verdict:
    """The answer has the sample's value: exact, numeric, choice, math-verify, ANLS, in that order."""
    found = grade(case.trajectory.answer, case.sample)
    detail = f"{found.kind}: {found.detail}"
    if found.right:
        return passed(detail, score=found.score)
    return failed(Flaw.WRONG_ANSWER, detail, score=found.score)


def _is_right(case: Case) -> bool:
    return grade(case.trajectory.answer, case.sample).right


ANSWER = Question("judge_answer", PROMPT, _is_right)
"""Whether an answer says what the sample's answer says; the embedded judge grades."""


@judged(ANSWER, version=2)
async def answer_judged(case: Case, judge: Judge) -> Verdict:
    """The answer is the sample's by its grade or, where no rule could tell, by most votes of a judge."""
    sample, given = case.sample, case.trajectory.answer
    found = grade(given, sample)
    if found.right:
        return passed(f"{found.kind}: {found.detail}", score=found.score)
    if sample.choices or found.kind == "numeric":
        return failed(Flaw.WRONG_ANSWER, f"{found.kind}: {found.detail}", score=found.score)
    if why := refusal(given, sample.answer):
        return failed(Flaw.WRONG_ANSWER, f"{found.kind}: {found.detail}; no judge asked: {why}", score=found.score)
    return by_votes(await judge.ask(ANSWER, case, slots=meaning_slots(given, sample)), Flaw.WRONG_ANSWER)
