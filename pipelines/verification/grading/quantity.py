"""Numbers as people write them: 1,234.5, 12 500, 3/4, 1½, -2e3, 12 %, $12, 12 cm, 5 ft 11 in. Exact: no float.

Two numbers are equal when their values are; besides, one may be the other rounded, if it still has three significant
digits and two decimals (3.14 for 3.14159, never 3 for 3.2). Temperatures have no common zero, so their units stay
apart.
"""

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from darkroom.pipelines.verification.grading.word_lists import read_words


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
_DECIMAL = r"(?:(?:0|[1-9]\d{0,2}(?:(?:,\d{3})+|(?:[ '’]\d{3})+(?!\d))|[1-9]\d*)(?:\.\d*)?|\.\d+)"
_POWER = r"(?:[eE]([+-]?\d{1,3})|\s*(?:[x*×·]|\\times|\\cdot)\s*10\s*\^\s*(\{[+-]?\d{1,3}\}|[+-]?\d{1,3}))"
_NUMBER = re.compile(rf"\A([+-]?)\s*({_DECIMAL}){_POWER}?", re.ASCII)
_SLASHED = re.compile(r"\A([+-]?)\s*(?:(0|[1-9]\d{0,19})\s+)?([1-9]\d{0,19}|0)\s*/\s*([1-9]\d{0,19})", re.ASCII)
_FRAC = re.compile(
    r"\A([+-]?)\s*+(0|[1-9]\d{0,19})?+\s*+\\[dt]?frac\s*\{\s*(-?\d{1,20})\s*\}\s*\{\s*([1-9]\d{0,19})\s*\}", re.ASCII
)
_CURRENCY = re.compile(r"\A([+-]?)\s*(\\?[$€£¥₹]|US ?\$|USD|EUR|GBP|JPY|INR)\s*([+-]?)(?=[\d.])", re.ASCII)
_PLACED = {
    "½": "1/2",
    "¼": "1/4",
    "¾": "3/4",
    "⅓": "1/3",
    "⅔": "2/3",
    "⅕": "1/5",
    "⅛": "1/8",
    "⅜": "3/8",
    "⅝": "5/8",
    "⅞": "7/8",
}
_PLACED_FRACTION = re.compile(rf"(\d?)\s?([{''.join(_PLACED)}])")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_RAISED_TEN = re.compile(r"(?<=10)[⁻⁰¹²³⁴-⁹]+")
_MEASURE = re.compile(
    rf"(?:(?:and|,)\s+)?({_DECIMAL}|[1-9]\d*\s*/\s*[1-9]\d*)\s*-?([^\d\s.,+*/=-]+)(?:\s*,?\s*|\Z)", re.ASCII
)
_MAX_MEASURES = 3
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


@lru_cache(maxsize=1024)  # one answer is compared with many
def read_quantity(text: str) -> Quantity | None:
    """The quantity that the whole text is; None where it is none."""
    if len(text) > MAX_NUMBER_CHARS:
        return None
    currency = _CURRENCY.match(text)
    body = f"{currency[1] or currency[3]}{text[currency.end() :]}" if currency else text
    body = _in_line(body)
    for pattern, read in ((_FRAC, _fraction), (_SLASHED, _fraction), (_NUMBER, _decimal)):
        match = pattern.match(body)
        rest = body[match.end() :] if match else ""
        if match and (number := read(match, rest)) is not None:
            symbol = currency[2].removeprefix("\\").replace(" ", "") if currency else ""
            quantity = _with_unit(number, rest.strip() if not symbol else f"{rest.strip()}{symbol}")
            if quantity is not None:
                return quantity
    return _in_parts(body)


def _in_line(text: str) -> str:
    """Fractions and exponents that are one raised sign, written out: ``2½`` as ``2 1/2``, ``10⁸`` as ``10^8``."""
    if text.isascii():
        return text
    text = _PLACED_FRACTION.sub(lambda match: f"{match[1]}{' ' if match[1] else ''}{_PLACED[match[2]]}", text)
    text = text.replace("\u2044", "/").replace("′′", '"')
    return _RAISED_TEN.sub(lambda match: f"^{match[0].translate(_RAISED)}", text)


def _in_parts(text: str) -> Quantity | None:
    """Several measures of one dimension, the larger first: "5 ft 11 in", "1 hour and 30 minutes", "1h30"."""
    end, parts = 0, list[Quantity]()
    body = re.sub(r"\A(\d+\s?h)\s?(\d{2})\s?m?\Z", r"\1 \2 min", text)
    body = re.sub(r"\A(\d+\s?m)\s?(\d{1,2}\s?s)\Z", r"\1in \2", body)
    body = re.sub(r"\A(\d+)-(foot|feet|ft)-(\d{1,2})\Z", r"\1 \2 \3", body)
    body = re.sub(r"\A(\d{1,2}):(\d{2}) ?h(?:ours?|rs?)?\Z", r"\1 h \2 min", body)
    body = re.sub(r"\A(\d+\s?(?:ft|foot|feet))\s(\d{1,2})\Z", r"\1 \2 in", body)
    while end < len(body) and len(parts) < _MAX_MEASURES:
        match = _MEASURE.match(body, end)
        unit = _unit_named(match[2]) if match else None
        number = read_quantity(match[1]) if match and unit else None
        if match is None or unit is None or number is None:
            return None
        parts.append(replace(number, unit=unit))
        end = match.end()
    units = [part.unit for part in parts if part.unit is not None]
    is_one = end == len(body) and len(parts) > 1 and len({unit.dimension for unit in units}) == 1
    if not is_one or any(larger.factor <= smaller.factor for larger, smaller in pairwise(units)):
        return None
    value = sum((part.value * unit.factor for part, unit in zip(parts, units, strict=True)), Fraction(0))
    return Quantity(value / units[-1].factor, 0, None, units[-1])


def same_quantity(
    answer: Quantity,
    expected: Quantity,
    *,
    factor: Fraction = Fraction(1),
    tolerance: float = 0,
    is_exact: bool = False,
) -> bool:
    """Whether the numbers agree, ``answer`` taken times ``factor``. ``tolerance`` is relative to ``expected``.

    ``is_exact``: neither may be the other rounded.
    """
    value = answer.value * factor
    if value == expected.value:
        return True
    apart = abs(value - expected.value)
    if tolerance and apart <= Fraction(str(tolerance)) * abs(expected.value):
        return True
    rounded = [quantity for quantity in (answer, expected) if quantity.can_be_rounded]
    if is_exact or factor != 1 or not rounded:
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
    sign, digits, power = match[1], re.sub("[, '’]", "", match[2]), (match[3] or match[4] or "0").strip("{}")
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
    words = re.sub(r"\\(?:text|mathrm|,|;|!| )\s*|[{}$]", "", words).strip() if words not in ("$", "US$") else words
    words = words.replace(r"\%", "%").replace(r"^\circ", "°").replace(r"\circ", "°").replace("^°", "°").strip()
    words = re.sub(r"\A-(?=[a-zA-Z])", "", words)
    if not words:
        return number
    if unit := _unit_named(words):
        return replace(number, unit=unit)
    if re.fullmatch(r"[a-zA-Z]{2,}(?:[ -][a-zA-Z]{2,})?", words):
        return replace(number, noun=words.casefold())
    return None


def _unit_named(words: str) -> Unit | None:
    plain = " ".join(words.split())
    return UNITS.get(plain) or (UNITS.get(plain.casefold()) if len(plain) > 2 else None)
