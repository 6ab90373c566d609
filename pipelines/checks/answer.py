"""Checks on the answer."""

from __future__ import annotations

from pipelines.answers import matches
from pipelines.checks.base import Case
from pipelines.records import Check


def answer_matches(case: Case) -> Check:
    """The answer is the sample's."""
    sample, given = case.sample, case.trajectory.answer
    passed = matches(given, sample.answer, sample.choices)
    return Check("answer_matches", passed, detail="" if passed else f"answered {given!r}, expected {sample.answer!r}")
