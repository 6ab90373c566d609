"""Problems as rows: the words of a table with a problem's values, exact numbers as they are written."""

import json
from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import Any

from darkroom.pipelines.demo.grammar import one_form
from darkroom.pipelines.records import Truth
from darkroom.pipelines.records.samples import ReferenceSolution
from darkroom.pipelines.sources import SourceRow


def problem_row(
    row: str, question: str, answer: str, details: Mapping[str, Any], *, category: str, images: tuple[bytes, ...] = ()
) -> SourceRow:
    """The row of a problem; ``details`` is JSON."""
    return SourceRow(
        row=row,
        images=images,
        question=question,
        answer=answer,
        truth=Truth(details=json.dumps(details, sort_keys=True, ensure_ascii=False)),
        category=category,
        license="Apache-2.0",
    )


def solution(words: Mapping[str, Any], values: Mapping[str, Any], *, drawn: bool = False) -> dict[str, Any]:
    """How a problem is solved, for ``truth.details``: ``idea``, ``steps``, ``programs`` and ``seen`` of its table. The
    values decide in which of its forms the idea is said."""
    return ReferenceSolution(
        idea=one_form(words["idea"], Random(repr(sorted(values.items())))),
        steps=tuple(step.format(**values) for step in words.get("steps", ())),
        programs=tuple(program.format(**values) for program in words["programs"]),
        seen=words["seen"],
        drawn=drawn,
    ).as_json()


def written(value: Fraction) -> str:
    """``3`` or ``3.5``."""
    return str(value) if value.denominator == 1 else str(float(value))


def terms(*coefficients: tuple[int, str]) -> str:
    """A sum as it is written: ``terms((1, "x²"), (-3, "x"), (2, ""))`` is ``x² - 3x + 2``."""
    text = ""
    for factor, letter in coefficients:
        if factor:
            size = "" if abs(factor) == 1 and letter else str(abs(factor))
            text += f"{' - ' if factor < 0 else ' + '}{size}{letter}"
    return f"-{text[3:]}" if text.startswith(" - ") else text[3:] or "0"
