"""Problems of ``reasoning_gym``, without images, each with the verifier that judges answers to it.

``truth.details`` is JSON: ``{"verifier": "reasoning_gym", "task": "gcd", "entry": {"question": ..., "answer": ...,
"metadata": {...}}, "worked": {...}}`` (``pipelines/records/samples.py``). Importing reasoning_gym takes more
than a second, so it is imported when a row is built.
"""

import json
import warnings
from collections.abc import Mapping
from random import Random
from types import ModuleType
from typing import Any

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images.material import LazyRow, lazy_rows
from darkroom.pipelines.demo.images.problems import problem_row, solution
from darkroom.pipelines.sources import SourceRow

SOLUTIONS = data_beside(__file__)
N_OF_EACH = 3
VERIFIER = "reasoning_gym"


def maths(seed: int) -> list[LazyRow]:
    """``N_OF_EACH`` problems of each task that has a solution, not generated yet."""
    return lazy_rows("maths", _problem, [*SOLUTIONS] * N_OF_EACH, seed)


def verify(details: str, answer: str) -> float:
    """The score 0..1 that the problem's own verifier gives an answer; 1 means right.

    ``details`` is ``truth.details`` of a row made here. An answer that the verifier cannot read scores 0. Raises
    ``ValueError`` when ``details`` names another verifier.
    """
    truth = json.loads(details)
    if truth.get("verifier") != VERIFIER:
        raise ValueError(f"expected details of {VERIFIER!r}, found {truth.get('verifier')!r}; use that verifier")
    score = _gym().get_score_answer_fn(truth["task"])
    try:
        return float(score(answer, truth["entry"]))
    except (ArithmeticError, AttributeError, LookupError, SyntaxError, TypeError, ValueError):
        # prime_factorization and others parse the answer without a guard
        return 0.0


def _gym() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import reasoning_gym
    module: ModuleType = reasoning_gym
    return module


def _problem(row: str, task: str, seed: int) -> SourceRow:
    entry = _gym().create_dataset(task, size=1, seed=Random(f"{seed}/{row}").randrange(2**31))[0]
    worked = solution(SOLUTIONS[task], _values(task, entry["metadata"]))
    details = {"verifier": VERIFIER, "task": task, "entry": entry, "worked": worked}
    return problem_row(row, entry["question"], entry["answer"], details, category="maths")


def _values(task: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What the words of a solution name: the metadata, its numbers as a list, the sides of its equation."""
    values = dict(metadata)
    if task in ("gcd", "lcm", "prime_factorization"):
        numbers = metadata["factors" if task == "prime_factorization" else "numbers"]
        values["listed"] = ", ".join(map(str, numbers))
    if task == "simple_equations":
        values["left"], values["right"] = metadata["equation"].split(" = ")
    return values
