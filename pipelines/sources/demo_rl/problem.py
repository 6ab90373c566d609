"""A mathematical problem in words, and its row: ``truth.details`` says whether a drawing would help to solve it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from random import Random
from typing import NamedTuple

from pipelines.records import Truth
from pipelines.sources.base import SourceRow
from pipelines.sources.demo.lazy import LazyRow


class Problem(NamedTuple):
    """What is asked, the answer, and the field that it belongs to."""

    category: str
    question: str
    answer: str


Kind = Callable[[Random, int], Problem]
"""Makes the n-th problem of its kind: ``n`` chooses the wording."""


def problems(name: str, kinds: Sequence[Kind], n_of_each: int, *, suitable: bool, seed: int) -> list[LazyRow]:
    """``n_of_each`` problems of each kind, not made yet."""
    rows = [(f"{name}/{n:02d}-{place:02d}", kind, n) for n in range(n_of_each) for place, kind in enumerate(kinds)]
    return [LazyRow(row, partial(_row, row, kind, n, suitable, seed)) for row, kind, n in rows]


def _row(row: str, kind: Kind, n: int, suitable: bool, seed: int) -> SourceRow:
    made = kind(Random(f"{seed}/{row}"), n)
    return SourceRow(
        row=row,
        images=(),
        question=made.question,
        answer=made.answer,
        truth=Truth(details=json.dumps({"suitable": suitable})),
        category=made.category,
        license="Apache-2.0",
    )


def worded(wordings: Sequence[str], n: int, **values: object) -> str:
    """The ``n``-th wording with its values."""
    return wordings[n % len(wordings)].format(**values)


def number(value: Fraction) -> str:
    """A whole number or a fraction in lowest terms."""
    return str(value)


def terms(*coefficients: tuple[int, str]) -> str:
    """A sum as it is written: ``terms((1, "x²"), (-3, "x"), (2, ""))`` is ``x² - 3x + 2``."""
    text = ""
    for factor, letter in coefficients:
        if factor:
            sign = " - " if factor < 0 else " + "
            text += f"{sign}{'' if abs(factor) == 1 and letter else abs(factor)}{letter}"
    return (
        text.removeprefix(" + ").replace(" - ", "-", 1) if text.startswith(" - ") else text.removeprefix(" + ") or "0"
    )
