"""Problems as rows: words of a table with a problem's values, exact numbers; and those of ``reasoning_gym``.

The latter have no images, and each has the verifier that judges answers to it.

``truth.details`` is JSON: ``{"verifier": "reasoning_gym", "task": "gcd", "entry": {"question": ..., "answer": ...,
"metadata": {...}}, "worked": {...}}`` (``pipelines/records/samples.py``). Importing reasoning_gym takes more
than a second, so it is imported when a row is built.
"""

import json
import warnings
from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import Any

from darkroom.pipelines.demo import data_beside, one_form
from darkroom.pipelines.demo.images.material import LazyRow, lazy_rows
from darkroom.pipelines.records import Truth
from darkroom.pipelines.records.samples import ReferenceSolution
from darkroom.pipelines.sources import SourceRow


def problem_row(
    row: str, question: str, answer: str, details: Mapping[str, Any], *, category: str, images: tuple[bytes, ...] = ()
) -> SourceRow:
    truth = Truth(details=json.dumps(details, sort_keys=True, ensure_ascii=False))
    return SourceRow(row, images, question, answer, truth=truth, category=category, license="Apache-2.0")


def solution(words: Mapping[str, Any], values: Mapping[str, Any], *, drawn: bool = False) -> dict[str, Any]:
    """Solution of a problem, for ``truth.details``; the values decide which form of its table's idea is taken."""
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


SOLUTIONS = data_beside(__file__)
N_OF_EACH = 3


def maths(seed: int) -> list[LazyRow]:
    """``N_OF_EACH`` problems of each task that has a solution, not generated yet."""
    return lazy_rows("maths", _problem, [*SOLUTIONS] * N_OF_EACH, seed)


def _problem(row: str, task: str, seed: int) -> SourceRow:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import reasoning_gym
    entry = reasoning_gym.create_dataset(task, size=1, seed=Random(f"{seed}/{row}").randrange(2**31))[0]
    reference = solution(SOLUTIONS[task], _values(task, entry["metadata"]))
    details = {"verifier": "reasoning_gym", "task": task, "entry": entry, "worked": reference}
    return problem_row(row, entry["question"], entry["answer"], details, category="maths")


def _values(task: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Values that the words of a solution name: the metadata, its numbers as a list, the sides of its equation."""
    values = dict(metadata)
    if task in ("gcd", "lcm", "prime_factorization"):
        numbers = metadata["factors" if task == "prime_factorization" else "numbers"]
        values["listed"] = ", ".join(map(str, numbers))
    if task == "simple_equations":
        values["left"], values["right"] = metadata["equation"].split(" = ")
    return values
