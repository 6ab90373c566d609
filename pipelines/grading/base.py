"""What a grade is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipelines.records import Sample

Kind = Literal["exact", "numeric", "choice", "maths", "anls", "list", "box", "judged", "none"]
"""By which rule an answer was judged; ``none`` where no rule could read it."""


@dataclass(frozen=True, slots=True)
class Grade:
    """Whether an answer is right, by which rule, and what was compared. ``score`` is 1.0 or 0.0, or the rule's own."""

    right: bool
    kind: Kind
    detail: str
    score: float


def graded(right: bool, kind: Kind, given: str, sample: Sample, *, how: str = "", score: float | None = None) -> Grade:
    """The grade of ``given``, which a rule compared with the sample's answer."""
    relation = "is" if right else "is not"
    detail = f"{given[:120]!r} {relation} {sample.answer[:120]!r}{f'; {how}' if how else ''}"
    return Grade(right, kind, detail, float(right) if score is None else score)


def refused(given: str, sample: Sample, why: str) -> Grade:
    """The grade of ``given``, which no rule is shown."""
    return graded(False, "none", given, sample, how=why)
