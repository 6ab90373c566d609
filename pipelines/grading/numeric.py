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
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {word: n for n, word in enumerate(f"{_ONES} eighteen nineteen".split())}
_WORDS |= {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}
_SPELLED = re.compile(
    rf"\A(?P<minus>minus\s+)?(?:(?P<tens>{'|'.join(_TENS.split())})[-\s](?P<ones>{'|'.join(_ONES.split()[1:10])})"
    rf"|(?P<alone>{'|'.join(sorted(_WORDS, key=len, reverse=True))}))(?![\w-])",
    re.IGNORECASE,
)


def same_number(given: str, expected: str, *, question: str, tolerance: float = 0) -> bool | None:
    """None where ``expected`` is no number, or ``given`` is none."""
    left, right = read_quantity(given), read_quantity(expected)
    if left is None or right is None:
        return None
    factor = _factor(left, right, question)
    return factor is not None and same_quantity(left, right, factor=factor, tolerance=tolerance)


def same_form(given: str, expected: str, *, question: str) -> bool:
    """Whether both are one number in one form: 6/8 is not 3/4 and 0.6667 not 0.67, but 0.67 m is 0.67 metres."""
    if not same_number(given, expected, question=question):
        return False
    left, right = read_quantity(given), read_quantity(expected)
    assert left is not None
    assert right is not None
    return _digits(given) == _digits(expected) and (left.n_decimals, left.value) == (right.n_decimals, right.value)


def with_unit(text: str, unit: str) -> str:
    """A number that names no unit, with ``unit`` after it; any other text as it is."""
    found = read_quantity(text)
    return text if found is None or found.unit or found.noun or not unit else f"{text} {unit}"


def in_digits(text: str) -> str:
    """A number word at the beginning as digits: "twenty-one birds" is "21 birds". Up to ninety-nine."""
    found = _SPELLED.match(text)
    if found is None:
        return text
    number = (
        _WORDS[found["tens"].casefold()] + _WORDS[found["ones"].casefold()]
        if found["tens"]
        else _WORDS[found["alone"].casefold()]
    )
    return f"{'-' if found['minus'] else ''}{number}{text[found.end() :]}"


def is_named(unit: Unit, question: str) -> bool:
    """Whether the question names the unit, in any of its spellings."""
    return any(_name(name).search(question) for name in unit.names)


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
    alike = {unit for unit in UNITS.values() if unit.dimension == beside.unit.dimension and is_named(unit, question)}
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


def _name(name: str) -> re.Pattern[str]:
    flags = re.IGNORECASE if len(name) > 2 else re.NOFLAG
    return re.compile(rf"(?<![^\W\d]){re.escape(name)}(?![^\W\d])", flags)


def _digits(text: str) -> str:
    """The number as written, without its unit and the spelling of its fraction."""
    return "/".join(re.findall(r"\d+(?:\.\d*)?|\.\d+", text.replace(",", "")))
