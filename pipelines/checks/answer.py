"""Checks on the answer."""

from __future__ import annotations

from pipelines.answers import matches
from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed


@check()
def answer_matches(case: Case) -> Verdict:
    """The answer is the sample's."""
    sample, given = case.sample, case.trajectory.answer
    if matches(given, sample.answer, sample.choices):
        return passed()
    return failed(Flaw.WRONG_ANSWER, f"answered {given!r}, expected {sample.answer!r}")
