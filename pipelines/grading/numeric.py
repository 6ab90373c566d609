"""Whether two answers are the same number, read in the light of the question.

A unit that only one of them has counts if the question names it: "12" is "12 cm" where centimetres are asked for, and
12 per cent where a percentage is. A counted noun counts if the question asks how many there are of it.
"""

from __future__ import annotations

import re
from fractions import Fraction

from pipelines.grading.quantity import Quantity, read_quantity, same_quantity
from pipelines.grading.units import UNITS, Unit

PER_CENT = UNITS["%"]
_COUNTED = re.compile(r"(?:how many|number of)\s+((?:[a-z-]+\s+){0,3}[a-z-]+)", re.IGNORECASE)


def same_number(given: str, expected: str, *, question: str, tolerance: float = 0) -> bool | None:
    """None where ``expected`` is no number, or ``given`` is none."""
    left, right = read_quantity(given), read_quantity(expected)
    if left is None or right is None:
        return None
    factor = _factor(left, right, question)
    return factor is not None and same_quantity(left, right, factor=factor, tolerance=tolerance)


def _factor(given: Quantity, expected: Quantity, question: str) -> Fraction | None:
    """What ``given`` must be multiplied with to be in the unit of ``expected``; None where the units do not agree."""
    if not (_may_be_said(given, expected, question) and _may_be_said(expected, given, question)):
        return None
    one, other = _unit(given, expected, question), _unit(expected, given, question)
    if one is None or other is None:
        return Fraction(1) if one is other else _ratio(one, other, question)
    return one.factor / other.factor if one.dimension == other.dimension else None


def _unit(of: Quantity, beside: Quantity, question: str) -> Unit | None:
    """The unit of a number; if it has none, the one of the other's dimension that the question names."""
    if of.unit is not None or beside.unit is None or of.noun:
        return of.unit
    alike = {unit for unit in UNITS.values() if unit.dimension == beside.unit.dimension and _is_named(unit, question)}
    return alike.pop() if len(alike) == 1 else None


def _ratio(one: Unit | None, other: Unit | None, question: str) -> Fraction | None:
    """A percentage beside a bare number of a question that names no percentage: 12% is 0.12."""
    if one is PER_CENT and other is None:
        return PER_CENT.factor
    if other is PER_CENT and one is None:
        return 1 / PER_CENT.factor
    return None


def _may_be_said(of: Quantity, beside: Quantity, question: str) -> bool:
    if not of.noun or of.noun == beside.noun:
        return True
    return any(of.noun in _singular_too(found[1]) for found in _COUNTED.finditer(question))


def _singular_too(phrase: str) -> set[str]:
    """What "how many red apples are" may count: every run of up to two of its words, in the plural or not."""
    words = phrase.casefold().split()
    runs = {" ".join(words[start : start + length]) for length in (1, 2) for start in (0, 1)}
    return runs | {run.removesuffix("s") for run in runs}


def _is_named(unit: Unit, question: str) -> bool:
    return any(_name(name).search(question) for name in unit.names)


def _name(name: str) -> re.Pattern[str]:
    flags = re.IGNORECASE if len(name) > 2 else re.NOFLAG
    return re.compile(rf"(?<![^\W\d]){re.escape(name)}(?![^\W\d])", flags)
