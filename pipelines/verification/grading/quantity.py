"""Numbers as people write them: 1,234.5, 3/4, 1 1/2, -2e3, 12 %, $12, 12 cm. Exact: no float, nothing is rounded away.

Two numbers are equal when their values are; besides, one may be the other rounded, if it still has three significant
digits and two decimals (3.14 for 3.14159, never 3 for 3.2). Temperatures have no common zero, so their units stay
apart.
"""

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from pipelines.verification.grading.word_lists import read_words


@dataclass(frozen=True, slots=True)
class Unit:
    """``factor`` takes a number in this unit to the dimension's own; ``names`` are all its spellings."""

    dimension: str
    factor: Fraction
    names: tuple[str, ...]


_ALL = [
    Unit(dimension, Fraction(factor), tuple(names))
    for dimension, units in read_words(__file__).items()
    for factor, names in units.items()
]
UNITS = {name: unit for unit in _ALL for name in unit.names}
"""Every spelling of every unit. Case tells where it must (mL, L, m); words may be in any case."""


MAX_NUMBER_CHARS = 60
_DECIMAL = r"(?:(?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*)(?:\.\d*)?|\.\d+)"
_POWER = r"(?:[eE]([+-]?\d{1,3})|\s*(?:[x*×·]|\\times|\\cdot)\s*10\s*\^\s*(\{[+-]?\d{1,3}\}|[+-]?\d{1,3}))"
_NUMBER = re.compile(rf"\A([+-]?)\s*({_DECIMAL}){_POWER}?", re.ASCII)
_SLASHED = re.compile(r"\A([+-]?)\s*(?:(0|[1-9]\d{0,19})\s+)?([1-9]\d{0,19}|0)\s*/\s*([1-9]\d{0,19})", re.ASCII)
_FRAC = re.compile(
    r"\A([+-]?)\s*+(0|[1-9]\d{0,19})?+\s*+\\[dt]?frac\s*\{\s*(-?\d{1,20})\s*\}\s*\{\s*([1-9]\d{0,19})\s*\}", re.ASCII
)
_CURRENCY = re.compile(r"\A([+-]?)\s*\\?([$€£¥])\s*(?=[\d.])")
_MIN_DIGITS, _MIN_DECIMALS = 3, 2


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit. ``n_decimals`` is None where the spelling is exact (a whole number or a fraction)."""

    value: Fraction
    n_digits: int
    n_decimals: int | None
    unit: Unit | None = None
    noun: str = ""
    """What is counted, where that is no unit: "12 apples"."""

    @property
    def can_be_rounded(self) -> bool:
        """Whether it has the digits that a rounded answer needs."""
        return self.n_decimals is not None and self.n_decimals >= _MIN_DECIMALS and self.n_digits >= _MIN_DIGITS


def read_quantity(text: str) -> Quantity | None:
    """The quantity that the whole text is; None where it is none."""
    if len(text) > MAX_NUMBER_CHARS:
        return None
    currency = _CURRENCY.match(text)
    body = f"{currency[1]}{text[currency.end() :]}" if currency else text
    for pattern, read in ((_FRAC, _fraction), (_SLASHED, _fraction), (_NUMBER, _decimal)):
        match = pattern.match(body)
        rest = body[match.end() :] if match else ""
        if match and (number := read(match, rest)) is not None:
            return _with_unit(number, rest.strip() + (currency[2] if currency else ""))
    return None


def same_quantity(
    answer: Quantity, expected: Quantity, *, factor: Fraction = Fraction(1), tolerance: float = 0
) -> bool:
    """Whether the numbers agree, ``answer`` taken times ``factor``. ``tolerance`` is relative to ``expected``."""
    value = answer.value * factor
    if value == expected.value:
        return True
    apart = abs(value - expected.value)
    if tolerance and apart <= Fraction(str(tolerance)) * abs(expected.value):
        return True
    rounded = [quantity for quantity in (answer, expected) if quantity.can_be_rounded]
    if factor != 1 or not rounded:
        return False
    coarser = min(rounded, key=lambda quantity: quantity.n_decimals or 0)
    finer_candidate = expected if coarser is answer else answer
    finer = (finer_candidate.n_decimals is None and finer_candidate.value.denominator > 1) or (
        finer_candidate.n_decimals or 0
    ) > (coarser.n_decimals or 0)
    return finer and apart <= Fraction(1, 2 * 10 ** (coarser.n_decimals or 0))


def _decimal(match: re.Match[str], rest: str) -> Quantity | None:
    if re.match(r"[\d.,^/_]*\d", rest):
        return None
    sign, digits, power = match[1], match[2].replace(",", ""), (match[3] or match[4] or "0").strip("{}")
    whole, _, decimals = digits.partition(".")
    value = Fraction(int(whole + decimals or "0"), 10 ** len(decimals)) * Fraction(10) ** int(power)
    n_decimals = len(decimals) - int(power) if decimals else None
    return Quantity(-value if sign == "-" else value, len((whole + decimals).lstrip("0")), n_decimals)


def _fraction(match: re.Match[str], rest: str) -> Quantity | None:
    if re.match(r"\s*[\d./^]", rest):
        return None
    value = int(match[2] or 0) + Fraction(int(match[3]), int(match[4]))
    return Quantity(-value if match[1] == "-" else value, 0, None)


def _with_unit(number: Quantity, words: str) -> Quantity | None:
    words = re.sub(r"\\(?:text|mathrm|,|;| )\s*|[{}]", "", words).strip()
    words = words.replace(r"\%", "%").replace(r"^\circ", "°")
    if not words:
        return number
    unit = UNITS.get(words) or (UNITS.get(words.casefold()) if len(words) > 2 else None)
    if unit is not None:
        return replace(number, unit=unit)
    if re.fullmatch(r"[a-zA-Z]{2,}(?:[ -][a-zA-Z]{2,})?", words):
        return replace(number, noun=words.casefold())
    return None
