"""What a grade is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["exact", "numeric", "choice", "maths", "anls", "none"]
"""By which rule an answer was judged; ``none`` where no rule could read it."""


@dataclass(frozen=True, slots=True)
class Grade:
    """Whether an answer is right, by which rule, and what was compared. ``score`` is 1.0 or 0.0, or the rule's own."""

    right: bool
    kind: Kind
    detail: str
    score: float
