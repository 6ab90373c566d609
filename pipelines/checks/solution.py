"""A trajectory that was converted from a solution must stand on its own: whoever reads it never sees that solution."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed

_GIVEN = r"(?:given|provided|supplied|reference|original|long|longer|worked|draft|existing|above|earlier|previous)"
_WORK = r"(?:solution|derivation|proof|write-?up|answer key|model answer)"
_TELLTALE = re.compile(
    rf"\b{_GIVEN}[ -]{_WORK}s?\b|\b{_WORK}s? (?:(?:that )?(?:is|was|were|are|has been) )?"
    r"(?:given|provided|supplied|above)\b(?! by\b)"
    r"|\b(?:according to|as (?:in|shown in|stated in|per)|based on|following|convert(?:ed|ing)?|rewrit\w+)"
    rf" the {_WORK}\b"
    rf"|\bthe {_WORK} (?:says|states|claims|notes|above)\b"
    r"|\b(?:I was|I am|we are|we were|as) told\b|\bground[ -]truth\b|\b(?:known|expected|given) answer\b",
    re.IGNORECASE,
)


@check()
def solution_stays_hidden(case: Case) -> Verdict:
    """No thought and no line of a program speaks of a solution or an answer that was there before."""
    for where, text in _said(case):
        if told := _TELLTALE.search(text):
            return failed(Flaw.HINT_MENTIONED, f"{where} says {told[0]!r}")
    return passed()


def _said(case: Case) -> Iterator[tuple[str, str]]:
    for n, turn in enumerate(case.trajectory.rounds, 1):
        yield f"the thought of round {n}", turn.thought
        yield f"the program of round {n}", turn.code.replace("_", " ")
    yield "the final thought", case.trajectory.final_thought
