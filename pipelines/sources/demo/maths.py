"""Problems of ``reasoning_gym``, without pictures, each with the verifier that judges answers to it.

``truth.details`` is JSON: ``{"verifier": "reasoning_gym", "task": "gcd", "entry": {"question": ..., "answer": ...,
"metadata": {...}}, "worked": {...}}`` (``pipelines/worked.py``). Importing reasoning_gym takes more than a second, so
it is imported when a row is built.
"""

from __future__ import annotations

import json
import warnings
from functools import partial
from random import Random
from types import ModuleType
from typing import Any

from pipelines.records import Truth
from pipelines.sources.base import SourceRow
from pipelines.sources.demo.lazy import LazyRow
from pipelines.sources.demo.programs import worked

TASKS = (
    "gcd",
    "lcm",
    "chain_sum",
    "basic_arithmetic",
    "fraction_simplification",
    "prime_factorization",
    "count_primes",
    "simple_equations",
)
N_OF_EACH = 3
VERIFIER = "reasoning_gym"


def maths(seed: int) -> list[LazyRow]:
    """``N_OF_EACH`` problems of each task, not generated yet."""
    numbered = enumerate(TASKS * N_OF_EACH)
    return [LazyRow(f"maths/{number:02d}", partial(_problem, number, task, seed)) for number, task in numbered]


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


def _problem(number: int, task: str, seed: int) -> SourceRow:
    row = f"maths/{number:02d}"
    entry = _gym().create_dataset(task, size=1, seed=Random(f"{seed}/{row}").randrange(2**31))[0]
    details: dict[str, Any] = {"verifier": VERIFIER, "task": task, "entry": entry}
    details["worked"] = worked(task, entry["metadata"]).as_json()
    return SourceRow(
        row=row,
        images=(),
        question=entry["question"],
        answer=entry["answer"],
        truth=Truth(details=json.dumps(details, sort_keys=True, ensure_ascii=False)),
        category="maths",
        license="Apache-2.0",
    )
