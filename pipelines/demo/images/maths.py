"""Problems of ``reasoning_gym``, without images, each with the verifier that judges answers to it.

``truth.details`` is JSON: ``{"verifier": "reasoning_gym", "task": "gcd", "entry": {"question": ..., "answer": ...,
"metadata": {...}}, "worked": {...}}`` (``pipelines/records/samples.py``). Importing reasoning_gym takes more
than a second, so it is imported when a row is built.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from types import ModuleType
from typing import Any

from pipelines.demo.images.material import LazyRow
from pipelines.records import Truth
from pipelines.records.samples import ReferenceSolution
from pipelines.sources import SourceRow

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


Metadata = Mapping[str, Any]


def worked(task: str, metadata: Metadata) -> ReferenceSolution:
    """How one problem is solved. Raises ``KeyError`` for a task that is not in ``WORKED``."""
    return WORKED[task](metadata)


def _gcd(metadata: Metadata) -> ReferenceSolution:
    numbers, result = metadata["numbers"], metadata["result"]
    return ReferenceSolution(
        idea="The greatest common divisor comes out of Euclid's algorithm, two numbers at a time.",
        steps=(
            f"We look for the largest whole number that divides each of {_listed(numbers)}.",
            "Euclid's algorithm replaces the larger of two numbers by its remainder on division by the smaller one.",
            "The last remainder that is not zero is the divisor; with more numbers, go on with the next.",
            f"Carried out, this ends at {result}.",
        ),
        programs=(
            f"from math import gcd\n\nnumbers = {numbers}\nresult = 0\nfor number in numbers:\n"
            '    result = gcd(result, number)\nprint("gcd:", result)',
            'print("remainders:", [number % result for number in numbers])\nprint("gcd:", result)',
        ),
        seen="the greatest common divisor",
    )


def _lcm(metadata: Metadata) -> ReferenceSolution:
    numbers, result = metadata["numbers"], metadata["result"]
    return ReferenceSolution(
        idea="The least common multiple of two numbers is their product divided by their greatest common divisor.",
        steps=(
            f"We look for the smallest number that each of {_listed(numbers)} divides.",
            "For two numbers it is the product over the greatest common divisor.",
            f"That gives {result}, and nothing smaller is divided by all of them.",
        ),
        programs=(
            f"from math import gcd\n\nnumbers = {numbers}\nresult = 1\nfor number in numbers:\n"
            '    result = result * number // gcd(result, number)\nprint("lcm:", result)',
            'print("remainders:", [result % number for number in numbers])\nprint("lcm:", result)',
        ),
        seen="the least common multiple",
    )


def _arithmetic(metadata: Metadata) -> ReferenceSolution:
    expression = metadata["expression"]
    return ReferenceSolution(
        idea="Only signs and the order of operations can go wrong here, so the expression is best evaluated as it is.",
        steps=(
            f"The expression is {expression}.",
            "Parentheses come first, then products and quotients, then sums and differences from left to right.",
            "A minus before a negative number adds it.",
        ),
        programs=(f"value = {expression}\nif value == int(value):\n    value = int(value)\nprint(value)",),
        seen="the value",
    )


def _simplification(metadata: Metadata) -> ReferenceSolution:
    numerator, denominator = metadata["numerator"], metadata["denominator"]
    return ReferenceSolution(
        idea="A fraction is in lowest terms once both parts are divided by their greatest common divisor.",
        steps=(
            f"The fraction is {numerator} over {denominator}.",
            f"Both parts are divided by {metadata['reduction_factor']}, their greatest common divisor.",
            f"That leaves {metadata['simplified_numerator']} over {metadata['simplified_denominator']}.",
        ),
        programs=(
            f"from math import gcd\n\nnumerator, denominator = {numerator}, {denominator}\n"
            "divisor = gcd(numerator, denominator)\n"
            'print(f"{numerator // divisor}/{denominator // divisor}")',
            'print("still shared:", gcd(numerator // divisor, denominator // divisor))\n'
            'print(f"{numerator // divisor}/{denominator // divisor}")',
        ),
        seen="the fraction in lowest terms",
    )


def _factorization(metadata: Metadata) -> ReferenceSolution:
    number, factors = metadata["number"], metadata["factors"]
    return ReferenceSolution(
        idea="Dividing by 2, 3, 4 and so on as often as it goes leaves exactly the prime factors.",
        steps=(
            f"We split {number} into primes by trial division.",
            "Each divisor is used as long as it divides what is left, then the next one is tried.",
            f"The primes found are {_listed(factors)}.",
        ),
        programs=(
            f"number, divisor, factors = {number}, 2, []\nwhile number > 1:\n    while number % divisor == 0:\n"
            "        factors.append(divisor)\n        number //= divisor\n    divisor += 1\n"
            'print(" × ".join(map(str, factors)))',
        ),
        seen="the prime factors",
    )


def _primes(metadata: Metadata) -> ReferenceSolution:
    start, end = metadata["start"], metadata["end"]
    return ReferenceSolution(
        idea="Counting primes in a range by hand invites slips; a sieve does it at once.",
        steps=(
            f"We need all primes from {start} to {end}, both ends included.",
            "A sieve crosses out the multiples of each prime in turn; what is left is prime.",
            f"In the range {metadata['solution']} numbers are left.",
        ),
        programs=(
            f"start, end = {start}, {end}\nis_prime = [False, False] + [True] * (end - 1)\n"
            "for n in range(2, int(end**0.5) + 1):\n    if is_prime[n]:\n"
            "        is_prime[n * n :: n] = [False] * len(is_prime[n * n :: n])\n"
            "print(sum(is_prime[max(start, 0) : end + 1]))",
        ),
        seen="the number of primes",
    )


def _equation(metadata: Metadata) -> ReferenceSolution:
    left_side, right = metadata["equation"].split(" = ")
    variable = metadata["variable"]
    return ReferenceSolution(
        idea="This is one linear equation with one unknown, so the unknown can be isolated.",
        steps=(
            f"The equation is {metadata['equation']}.",
            f"Collect the terms with {variable} on one side and the numbers on the other, then divide.",
        ),
        programs=(
            f'from sympy import Eq, solve, symbols\n\n{variable} = symbols("{variable}")\n'
            f"equation = Eq({left_side}, {right})\nsolutions = solve(equation, {variable})\n"
            f'print("{variable} =", solutions[0])',
            f'print("difference:", equation.lhs.subs({variable}, solutions[0]) - equation.rhs)\n'
            f'print("{variable} =", solutions[0])',
        ),
        seen="the value of the unknown",
    )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


WORKED: dict[str, Callable[[Metadata], ReferenceSolution]] = {
    "gcd": _gcd,
    "lcm": _lcm,
    "chain_sum": _arithmetic,
    "basic_arithmetic": _arithmetic,
    "fraction_simplification": _simplification,
    "prime_factorization": _factorization,
    "count_primes": _primes,
    "simple_equations": _equation,
}
