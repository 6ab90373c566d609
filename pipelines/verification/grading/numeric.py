"""Whether two answers are the same number, read in the light of the question.

A unit that only one of them has counts if the question names it: "12" is "12 cm" where centimetres are asked for, and
12 per cent where a percentage is. A counted noun counts if the question asks how many there are of it.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from darkroom.pipelines.verification.grading.foreign_numbers import is_foreign
from darkroom.pipelines.verification.grading.number_words import in_digits
from darkroom.pipelines.verification.grading.quantity import UNITS, Quantity, Unit, read_quantity, same_quantity
from darkroom.pipelines.verification.grading.word_lists import read_words

PER_CENT = UNITS["%"]
_COUNTED = re.compile(r"(?:how many|number of)\s+((?:[a-z-]+\s+){0,3}[a-z-]+)", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]+")
_DATA = read_words(__file__)
_EXACT, _MONEY, _ANGLE, _SHARE, _ABOUT, _EXTENT, _POPULATION = (
    re.compile(_DATA[name], re.IGNORECASE)
    for name in ("exact", "money", "angle", "share", "about", "extent", "population")
)
_TEMPERATURES = frozenset(["celsius", "fahrenheit", "kelvin"])
_OTHER_WORDS = frozenset(["in", "'", '"', "′", "″", "bar", "bars", "A"])
"""Spellings of units that are other words in a question."""
_NAMES = re.compile(
    "|".join(
        rf"(?<![^\W\d]){'(?i:' if len(name) > 2 else '(?:'}{re.escape(name)})(?![^\W\d])"
        for name in sorted(UNITS, key=len, reverse=True)
        if name not in _OTHER_WORDS
    )
)
_PEOPLE = frozenset(["people", "inhabitants", "residents"])
CURRENCIES = frozenset(_DATA["currencies"])
_NUMBERED = re.compile(r"\A(?:(?:no\.|nr\.?|№|#)\s?(?=\d)|exactly\s+|\((?=[-+]?[\d.]+\)\Z))", re.IGNORECASE)
_GLOSS = re.compile(r"\A([^()]+)\(([^()]+)\)\Z")
_BELOW = re.compile(r"\A(\d[^-]{0,20}?) below(?: zero| 0)?\Z", re.IGNORECASE)
_OUT_OF = re.compile(r"\A(\d+) out of (\d+)(?=\s|\Z)", re.IGNORECASE)
_CLOCK = re.compile(r"\A(?:(\d{1,2}):)?(\d{1,2}):([0-5]\d)\Z", re.ASCII)
_IN_LARGE = re.compile(
    r"\bin (?:\w+ )?(thousand|million|billion)s?\b|\b(thousand|million|billion)s? of\b", re.IGNORECASE
)
_GENERIC = frozenset(["units", "area in units"])
_TIGHT_FRAC = re.compile(r"\\([dt]?)frac\s*(\d)\s*(\d)(?!\d)")


def same_number(answer: str, expected: str, *, question: str, tolerance: float = 0) -> bool | None:
    """None where ``expected`` is no number, or ``answer`` is none."""
    number, expected_number = read_quantity(answer), read_quantity(expected)
    if number is None or expected_number is None:
        return None
    factor = _factor(number, expected_number, question)
    is_exact = asks_for_exact(question)
    return factor is not None and same_quantity(
        number, expected_number, factor=factor, tolerance=tolerance, is_exact=is_exact
    )


def same_form(answer: str, expected: str, *, question: str) -> bool:
    """Whether both are one number in one form: 6/8 is not 3/4 and 0.6667 not 0.67, but 0.67 m is 0.67 metres."""
    if not same_number(answer, expected, question=question):
        return False
    number, expected_number = read_quantity(answer), read_quantity(expected)
    assert number is not None
    assert expected_number is not None
    return _digits(answer) == _digits(expected) and (number.n_decimals, number.value) == (
        expected_number.n_decimals,
        expected_number.value,
    )


def with_unit(text: str, unit: str) -> str:
    """A number that names no unit, with ``unit`` after it; any other text as it is."""
    quantity = read_quantity(text)
    return text if quantity is None or quantity.unit or quantity.noun or not unit else f"{text} {unit}"


@lru_cache(maxsize=1024)  # one answer is compared with many
def as_number(text: str) -> str:
    """A number as ``read_quantity`` reads it: in digits, without "No.", "below zero" or a gloss that says the same."""
    unwrapped = _NUMBERED.sub("", text, count=1)
    number = in_digits(unwrapped.removesuffix(")") if text[:1] == "(" != unwrapped[:1] else unwrapped)
    if (gloss := _GLOSS.match(number)) and read_quantity(number) is None:
        first, second = in_digits(gloss[1].strip()), in_digits(gloss[2].strip())
        quantities = read_quantity(first), read_quantity(second)
        if quantities[0] is not None and quantities[0] == quantities[1]:
            return first
    number = _BELOW.sub(r"-\1", number)
    number = _OUT_OF.sub(r"\1/\2", number)
    return _TIGHT_FRAC.sub(r"\\\1frac{\2}{\3}", number)


def spellings(text: str, expected: str, *, question: str, unit: str) -> Iterator[str]:
    """A number as ``as_number`` reads it, with the unit that is asked for, as a duration, in the millions asked for."""
    number = as_number(text)
    yield as_number(with_unit(number, unit))
    quantity, expected_quantity = read_quantity(number), read_quantity(expected)
    if expected_quantity is None:
        return
    if (
        (clock := _CLOCK.match(text))
        and expected_quantity.unit is not None
        and expected_quantity.unit.dimension == "time"
    ):
        yield f"{3600 * int(clock[1] or 0) + 60 * int(clock[2]) + int(clock[3])} s"
    if (large := _IN_LARGE.search(question)) and quantity is not None:
        factor = int(in_digits(f"one {large[1] or large[2]}"))
        if abs(quantity.value) >= factor > abs(expected_quantity.value) or abs(quantity.value) < factor <= abs(
            expected_quantity.value
        ):
            scale = Fraction(1, factor) if quantity.value > expected_quantity.value else Fraction(factor)
            rest = re.sub(r"\A[^a-zA-Z°%€£¥]*", "", number)
            yield f"{_decimal(quantity.value * scale)} {rest}".strip()
    if unit and number != as_number(with_unit(number, unit)):
        yield number


def _decimal(value: Fraction) -> str:
    return format(Decimal(value.numerator) / Decimal(value.denominator), "f")


def without_about(text: str, expected: str, *, tolerance: float) -> str:
    """What was measured, without "about": of a number with decimals or a tolerance. "About 12" leaves 12 open."""
    quantity = read_quantity(expected)
    is_measured = quantity is not None and quantity.n_decimals is not None
    return _ABOUT.sub("", text, count=1) if is_measured or tolerance else text


def asks_for_exact(question: str) -> bool:
    """Whether the question wants an exact value, of which a decimal is no other spelling."""
    return _EXACT.search(question) is not None


def is_named(unit: Unit, question: str) -> bool:
    """Whether the question names the unit, in any of its spellings."""
    return unit in _named(question)


@lru_cache(maxsize=1024)
def _named(question: str) -> frozenset[Unit]:
    """The units that a question names, the longest spelling first: "square metres" name no metre."""
    named = {UNITS.get(match[0]) or UNITS[match[0].casefold()] for match in _NAMES.finditer(question)}
    degrees = {UNITS["°"]}
    return frozenset(named | degrees if _ANGLE.search(question) else named - degrees)


def _factor(answer: Quantity, expected: Quantity, question: str) -> Fraction | None:
    """What ``answer`` must be multiplied with to be in the unit of ``expected``; None where the units do not agree."""
    if not (_may_be_said(answer, expected, question) and _may_be_said(expected, answer, question)):
        return None
    unit, expected_unit = _unit(answer, expected, question), _unit(expected, answer, question)
    if unit is UNITS["°"] and expected_unit is not None and expected_unit.dimension in _TEMPERATURES:
        return Fraction(1)  # "12 degrees" of a thermometer
    if _is_other_currency(unit, expected_unit, question):
        return None
    if unit is PER_CENT and expected_unit is None and abs(expected.value) > 1 and _SHARE.search(question):
        return Fraction(1)
    if (unit is None) != (expected_unit is None) and _is_money(unit or expected_unit, expected, question):
        return Fraction(1)
    if unit is not None and expected_unit is None and unit.dimension in _GENERIC and _EXTENT.search(question):
        return Fraction(1)
    if unit is None or expected_unit is None:
        # a percentage beside a bare number of a question that names no percentage: 12% is 0.12
        factors = {(None, None): Fraction(1), (PER_CENT, None): PER_CENT.factor, (None, PER_CENT): 1 / PER_CENT.factor}
        return factors.get((unit, expected_unit))
    return unit.factor / expected_unit.factor if unit.dimension == expected_unit.dimension else None


def _is_other_currency(unit: Unit | None, expected: Unit | None, question: str) -> bool:
    """Whether the answer is in a currency and the question names others only."""
    if unit is None or expected is not None or unit.names[0] not in CURRENCIES:
        return False
    named = {UNITS[symbol] for symbol in CURRENCIES if symbol in question or is_named(UNITS[symbol], question)}
    return bool(named) and unit not in named


def _is_money(unit: Unit | None, expected: Quantity, question: str) -> bool:
    """Whether a currency may be left out: the expected answer has it, or the question is about money."""
    if unit is None or unit.names[0] not in CURRENCIES:
        return False
    return expected.unit is not None or (_MONEY.search(question) is not None and not is_named(PER_CENT, question))


def _unit(of: Quantity, beside: Quantity, question: str) -> Unit | None:
    """The unit of a number; if it has none, the one of the other's dimension that the question names."""
    if of.unit is not None or beside.unit is None or of.noun:
        return of.unit
    alike = {unit for unit in UNITS.values() if unit.dimension == beside.unit.dimension and is_named(unit, question)}
    return alike.pop() if len(alike) == 1 else None


def _may_be_said(of: Quantity, beside: Quantity, question: str) -> bool:
    if not of.noun or of.noun == beside.noun or (of.noun in _PEOPLE and _POPULATION.search(question)):
        return True
    if is_foreign(question) and set(of.noun.split()) <= set(_WORDS.findall(question.casefold())):
        return True
    return any(of.noun in _singular_too(match[1]) for match in _COUNTED.finditer(question))


def _singular_too(phrase: str) -> set[str]:
    """What "how many red apples are" may count: every run of up to two of its words, in the plural or not."""
    words = phrase.casefold().split()
    runs = {" ".join(words[start : start + length]) for length in (1, 2) for start in (0, 1)}
    return runs | {run.removesuffix("s") for run in runs} | ({"persons", "person"} if "people" in runs else set())


def _digits(text: str) -> str:
    """The number as written, without its unit and the spelling of its fraction."""
    return "/".join(re.findall(r"\d+(?:\.\d*)?|\.\d+", text.replace(",", "")))
