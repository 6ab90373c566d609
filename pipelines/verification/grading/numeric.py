"""Numbers as people write them, and whether two are the same in the light of the question. Exact: no float.

A quantity is 1,234.5, 12 500, 3/4, 1½, -2e3, 12 %, $12, 12 cm or 5 ft 11 in (``quantity.toml`` has the units). Two are
equal when their values are; besides, one may be the other rounded, if it still has three significant digits and two
decimals (3.14 for 3.14159, never 3 for 3.2). Temperatures have no common zero, so their units stay apart.

A unit that only one of them has counts if the question names it: "12" is "12 cm" where centimetres are asked for, and
12 per cent where a percentage is. A counted noun counts if the question asks how many there are of it.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from darkroom.pipelines.verification.grading.number_words import figures, in_digits, is_foreign
from darkroom.pipelines.verification.grading.word_lists import Patterns, read_words, rewrites, rewritten


@dataclass(frozen=True, slots=True)
class Unit:
    """``factor`` takes a number in this unit to the dimension's own; ``names`` are all its spellings."""

    dimension: str
    factor: Fraction
    names: tuple[str, ...]


_DATA = read_words(__file__)
_RE = Patterns(_DATA)
EXACT = _RE.exact
"""A question that wants an exact value, of which a decimal is no other spelling."""
_MEASURES, _FORMS = rewrites(_DATA["measures"]), rewrites(_DATA["forms"])
_BY_KIND = read_words(__file__, "quantity").items()
_SPELLED = {(kind, Fraction(factor)): names for kind, units in _BY_KIND for factor, names in units.items()}
for _word, _symbol in _DATA["prefixed"].items():
    _kind, _size = next(key for key, names in _SPELLED.items() if _word in names)
    for _prefix, (_sign, _factor_of) in _DATA["prefixes"].items():
        _names = _SPELLED.setdefault((_kind, _size * Fraction(_factor_of)), [])
        _names += [_sign + _symbol, *(f"{_prefix}{_joint}{_word}{_end}" for _joint in ("", "-") for _end in ("", "s"))]
UNITS = {name: unit for unit in (Unit(*key, tuple(names)) for key, names in _SPELLED.items()) for name in unit.names}
"""Every spelling of every unit. Case tells where it must (mL, L, m); words may be in any case."""


MAX_NUMBER_CHARS = 60
_PLACED = re.compile("(\\d?)\\s?([½¼¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
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
        """Return whether it has the digits that a rounded answer needs."""
        return self.n_decimals is not None and self.n_decimals >= _MIN_DECIMALS and self.n_digits >= _MIN_DIGITS


@lru_cache(maxsize=1024)  # one answer is compared with many
def read_quantity(text: str) -> Quantity | None:
    """The quantity that the whole text is; None where it is none."""
    if len(text) > MAX_NUMBER_CHARS:
        return None
    currency = _RE.currency.match(text)
    body = _in_line(f"{currency[1] or currency[3]}{text[currency.end() :]}" if currency else text)
    for pattern, read in ((_RE.frac, _fraction), (_RE.slashed, _fraction), (_RE.number, _decimal)):
        match = pattern.match(body)
        rest = body[match.end() :] if match else ""
        if match and (number := read(match, rest)) is not None:
            symbol = currency[2].removeprefix("\\").replace(" ", "") if currency else ""
            if (quantity := _with_unit(number, f"{rest.strip()}{symbol}")) is not None:
                return quantity
    return _in_parts(body)


def _in_line(text: str) -> str:
    """Fractions and exponents that are one raised sign, written out: ``2½`` as ``2 1/2``, ``10⁸`` as ``10^8``."""
    if text.isascii():
        return text
    text = _PLACED.sub(lambda match: f"{match[1]} {unicodedata.normalize('NFKC', match[2])}".strip(), text)
    text = text.replace("\u2044", "/").replace("′′", '"')
    return _RE.raised_ten.sub(lambda match: f"^{match[0].translate(_RAISED)}", text)


def _in_parts(text: str) -> Quantity | None:
    """Several measures of one dimension, the larger first: "5 ft 11 in", "1 hour and 30 minutes", "1h30"."""
    body = rewritten(text, _MEASURES)
    measures = _RE.measure.findall(body) if _RE.measures_alone.match(body) else []
    numbers, units = [read_quantity(number) for number, _ in measures], [_unit_named(unit) for _, unit in measures]
    sized = [(number.value, unit) for number, unit in zip(numbers, units, strict=True) if number and unit]
    is_falling = all(larger.factor > smaller.factor for (_, larger), (_, smaller) in pairwise(sized))
    if len(sized) < len(measures) or len({unit.dimension for _, unit in sized}) != 1 or not is_falling:
        return None
    last = sized[-1][1]
    return Quantity(sum((value * unit.factor for value, unit in sized), Fraction(0)) / last.factor, 0, None, last)


def same_quantity(
    answer: Quantity, expected: Quantity, *, factor: Fraction | int = 1, tolerance: float = 0, is_exact: bool = False
) -> bool:
    """Return whether the numbers agree, ``answer`` taken times ``factor``. ``tolerance`` is relative to ``expected``.
    ``is_exact``: neither may be the other rounded."""
    if (value := answer.value * factor) == expected.value:
        return True
    apart = abs(value - expected.value)
    if tolerance and apart <= Fraction(str(tolerance)) * abs(expected.value):
        return True
    rounded = [quantity for quantity in (answer, expected) if quantity.can_be_rounded]
    if is_exact or factor != 1 or not rounded:
        # 33.33 % of a third, which is no decimal itself
        is_part = not is_exact and expected.n_decimals is None and expected.value.denominator > 1
        return is_part and answer.can_be_rounded and 2 * apart <= Fraction(1, 10 ** (answer.n_decimals or 0)) * factor
    coarser = min(rounded, key=lambda quantity: quantity.n_decimals or 0)
    finer = expected if coarser is answer else answer
    n_decimals = coarser.n_decimals or 0
    is_finer = (finer.n_decimals is None and finer.value.denominator > 1) or (finer.n_decimals or 0) > n_decimals
    return is_finer and apart <= Fraction(1, 2 * 10**n_decimals)


def _decimal(match: re.Match[str], rest: str) -> Quantity | None:
    if re.match(r"[\d.,^/_]*\d", rest):
        return None
    digits, power = re.sub("[, '’]", "", match[2]), int((match[3] or match[4] or "0").strip("{}"))
    whole, _, decimals = digits.partition(".")
    value = Fraction(digits) * Fraction(10) ** power * (-1 if match[1] == "-" else 1)
    return Quantity(value, len((whole + decimals).lstrip("0")), len(decimals) - power if decimals else None)


def _fraction(match: re.Match[str], rest: str) -> Quantity | None:
    if re.match(r"\s*[\d./^]", rest):
        return None
    value = int(match[2] or 0) + Fraction(int(match[3]), int(match[4]))
    return Quantity(-value if match[1] == "-" else value, 0, None)


def _with_unit(number: Quantity, words: str) -> Quantity | None:
    if words not in ("$", "US$", "R$"):
        words = re.sub(r"\\(?:text|mathrm|,|;|!| )\s*|[{}$]", "", words).strip()
    words = words.replace(r"\%", "%").replace(r"^\circ", "°").replace(r"\circ", "°").replace("^°", "°").strip()
    if not (words := re.sub(r"\A-(?=[a-zA-Z])", "", words)):
        return number
    if unit := _unit_named(words):
        return replace(number, unit=unit)
    if re.fullmatch(r"(?!(?:st|nd|rd|th)\b)[a-zA-Z]{2,}(?:[ -][a-zA-Z]{2,})?", words):
        return replace(number, noun=words.casefold())
    return None


def _unit_named(words: str) -> Unit | None:
    plain = " ".join(words.split())
    return UNITS.get(plain) or (UNITS.get(plain.casefold()) if len(plain) > 2 else None)


PER_CENT = UNITS["%"]
OTHER_WORDS = frozenset(["in", "'", '"', "′", "″", "bar", "bars", "A", "N", "J", "F", "C"])
"""Spellings of units that are other words in a question."""
_LONGEST_FIRST = [re.escape(name) for name in sorted(UNITS.keys() - OTHER_WORDS, key=lambda name: (-len(name), name))]
_IN_ANY_CASE = "|".join(name for name in _LONGEST_FIRST if len(name) > 2)
_CASED = "|".join(name for name in _LONGEST_FIRST if len(name) <= 2)
CURRENCIES, _PEOPLE, _TEMPERATURES, _GENERIC = (
    frozenset(_DATA[name]) for name in ("currencies", "people", "temperatures", "generic")
)


def same_number(answer: str, expected: str, *, question: str, tolerance: float = 0) -> bool | None:
    """Compare numbers; None where ``expected`` or ``answer`` is none."""
    number, expected_number = read_quantity(answer), read_quantity(expected)
    if number is None or expected_number is None:
        return None
    if (factor := _factor(number, expected_number, question)) is None:
        return False
    is_exact = EXACT.search(question) is not None
    return same_quantity(number, expected_number, factor=factor, tolerance=tolerance, is_exact=is_exact)


SPANS = [re.compile(pattern, re.IGNORECASE) for pattern in _DATA["spans"]]
_SPAN_FORMS = rewrites(_DATA["span_forms"])


def same_span(answer: str, expected: str, *, question: str) -> bool | None:
    """Compare "60 x 80 cm", "15 to 25 °C": two or three numbers that share a unit; None where none are expected."""
    for joint in SPANS:
        if expected_parts := _parts_of_span(joint, expected):
            parts = _parts_of_span(joint, answer)
            pairs = zip(parts, expected_parts, strict=False)
            return len(parts) == len(expected_parts) and all(same_number(*pair, question=question) for pair in pairs)
    return None


def texts_of_span(joint: re.Pattern[str], text: str) -> list[str]:
    """The two or three texts of "from 60 to 80 cm", which a joint of ``SPANS`` separates; none of anything else."""
    plain = text.replace("$", "") if "\\" in text else text
    parts = joint.split(rewritten(plain, _SPAN_FORMS)) if len(text) <= MAX_NUMBER_CHARS else []
    return [part.strip() for part in parts] if 1 < len(parts) < 4 else []


def _parts_of_span(joint: re.Pattern[str], text: str) -> list[str]:
    parts = [*map(as_number, texts_of_span(joint, text))]
    quantities = [*map(read_quantity, parts)]
    if None in quantities or not quantities or (last := quantities[-1]) is None:
        return []
    return [with_unit(part, last.unit.names[0] if last.unit else last.noun) for part in parts]


def same_form(answer: str, expected: str, *, question: str) -> bool:
    """Return whether both are one number in one form: 6/8 is not 3/4 and 0.6667 not 0.67, but 0.67 m is 0.67 metres."""
    if not same_number(answer, expected, question=question):
        return False
    quantities = filter(None, map(read_quantity, (answer, expected)))
    form, expected_form = ((quantity.n_decimals, quantity.value) for quantity in quantities)
    return _digits(answer) == _digits(expected) and form == expected_form


def with_unit(text: str, unit: str) -> str:
    """A number that names no unit, with ``unit`` after it; any other text as it is."""
    quantity = read_quantity(text)
    return text if quantity is None or quantity.unit or quantity.noun or not unit else f"{text} {unit}"


@lru_cache(maxsize=1024)  # one answer is compared with many
def as_number(text: str) -> str:
    """A number as ``read_quantity`` reads it: in digits, without "No.", "below zero" or a gloss that says the same."""
    unwrapped = _RE.numbered.sub("", text, count=1)
    number = in_digits(unwrapped.removesuffix(")") if text[:1] == "(" != unwrapped[:1] else unwrapped)
    if share := _RE.out_of.match(number):
        number = f"{in_digits(share[1])} of {in_digits(share[2])}"
    if (gloss := _RE.gloss.match(number)) and read_quantity(number) is None:
        first, second = in_digits(gloss[1].strip()), in_digits(gloss[2].strip())
        quantities = read_quantity(first), read_quantity(second)
        if quantities[0] is not None and quantities[0] == quantities[1]:
            return first
    return rewritten(number, _FORMS)


def spellings(text: str, expected: str, *, question: str, unit: str) -> Iterator[str]:
    """A number as ``as_number`` reads it, with the unit that is asked for, as a duration, in the millions asked for."""
    expected_quantity = read_quantity(expected)
    is_sterling = expected_quantity is not None and expected_quantity.unit is UNITS["£"]
    number = as_number(_RE.sterling.sub("£", text) if is_sterling else text)
    yield as_number(with_unit(number, unit))
    quantity = read_quantity(number)
    if expected_quantity is None:
        return
    is_time = expected_quantity.unit is not None and expected_quantity.unit.dimension == "time"
    if is_time and (clock := _RE.clock.match(text)):
        yield f"{3600 * int(clock[1] or 0) + 60 * int(clock[2]) + int(clock[3])} s"
    if (large := _RE.in_large.search(question)) and quantity is not None:
        factor = int(in_digits(f"one {large[1] or large[2]}"))
        if (abs(quantity.value) >= factor) != (abs(expected_quantity.value) >= factor):
            scale = Fraction(1, factor) if quantity.value > expected_quantity.value else Fraction(factor)
            value = quantity.value * scale
            rest = re.sub(r"\A[^a-zA-Z°%€£¥]*", "", number)
            yield f"{Decimal(value.numerator) / Decimal(value.denominator):f} {rest}".strip()
    if (share := _RE.out_of.match(text)) and re.search(rf"\bof (?:the )?{in_digits(share[2])}\b", figures(question)):
        yield in_digits(share[1])  # "4 of 10", of the ten that the question names
    power = _RE.power_of_ten.match(text)
    if power and text not in question and abs(expected_quantity.value) >= 10**6:
        yield f"1e{power[1]}"
    if unit and number != as_number(with_unit(number, unit)):
        yield number


def without_parts(text: str, expected: str) -> str:
    """Remove what a number consists of, "4 (two men and two women)", where that adds up to ``expected``."""
    head, _, behind = _RE.breakdown.sub("\n", text, count=1).partition("\n")
    numbers = [in_digits(word) for word in re.findall(r"\w+", behind)]
    counts = [int(number) for number in numbers if number.isdecimal() and len(number) < 10]
    single = [1] * len(re.findall(r"\ban?\b", behind))  # "two men and a woman"
    sums = {str(sum(several)) for several in (counts, counts + single) if len(several) > 1}
    return head if expected in sums else text


def none_as_zero(text: str, expected: str) -> str:
    """Write "no dogs" as "0 dogs" where none are expected."""
    return _RE.none.sub(" 0", text, count=1).strip() if expected == "0" else text


def without_about(text: str, expected: str, *, tolerance: float) -> str:
    """Remove "about" from a number with decimals or a tolerance, which was measured. "About 12" leaves 12 open."""
    quantity = read_quantity(expected)
    is_measured = quantity is not None and quantity.n_decimals is not None
    return _RE.about.sub("", text, count=1) if is_measured or tolerance else text


@lru_cache(maxsize=1024)
def units_of(question: str) -> frozenset[Unit]:
    """The units that a question names, the longest spelling first: "square metres" name no metre."""
    names = re.compile(rf"(?<![^\W\d])(?:(?i:{_IN_ANY_CASE})|{_CASED})(?![^\W\d])")  # here: it takes long to compile
    units = {UNITS.get(match[0]) or UNITS[match[0].casefold()] for match in names.finditer(question)}
    units |= {UNITS[name] for name in _RE.in_unit.findall(question)}
    degrees = {UNITS["°"]}
    return frozenset(units | degrees if _RE.angle.search(question) else units - degrees)


def _factor(answer: Quantity, expected: Quantity, question: str) -> Fraction | None:
    """Factor from the unit of ``answer`` to that of ``expected``; None where the units do not agree."""
    if not (_may_be_said(answer, expected, question) and _may_be_said(expected, answer, question)):
        return None
    unit, expected_unit = _unit(answer, expected, question), _unit(expected, answer, question)
    if unit is UNITS["°"] and expected_unit is not None and expected_unit.dimension in _TEMPERATURES:
        return Fraction(1)  # "12 degrees" of a thermometer
    if _is_other_currency(unit, expected_unit, question):
        return None
    if expected_unit is PER_CENT and not answer.unit and answer.n_decimals is None and abs(answer.value) < 1:
        return 1 / PER_CENT.factor  # two fifths are 40 %
    if unit is PER_CENT and expected_unit is None and abs(expected.value) > 1 and _RE.share.search(question):
        return Fraction(1)
    if (unit is None) != (expected_unit is None) and _is_money(unit or expected_unit, expected, question):
        return Fraction(1)
    if unit is not None and expected_unit is None and unit.dimension in _GENERIC and _RE.extent.search(question):
        return Fraction(1)
    if unit is None or expected_unit is None:
        # a percentage beside a bare number of a question that names no percentage: 12% is 0.12
        factors = {(None, None): Fraction(1), (PER_CENT, None): PER_CENT.factor, (None, PER_CENT): 1 / PER_CENT.factor}
        return factors.get((unit, expected_unit))
    return unit.factor / expected_unit.factor if unit.dimension == expected_unit.dimension else None


def _is_other_currency(unit: Unit | None, expected: Unit | None, question: str) -> bool:
    """Return whether the answer is in a currency and the question names others only."""
    if unit is None or expected is not None or unit.names[0] not in CURRENCIES:
        return False
    currencies = {UNITS[symbol] for symbol in CURRENCIES if symbol in question or UNITS[symbol] in units_of(question)}
    return bool(currencies) and unit not in currencies


def _is_money(unit: Unit | None, expected: Quantity, question: str) -> bool:
    """Return whether a currency may be left out: the expected answer has it, or the question is about money."""
    if unit is None or unit.names[0] not in CURRENCIES:
        return False
    return expected.unit is not None or (_RE.money.search(question) is not None and PER_CENT not in units_of(question))


def _unit(of: Quantity, beside: Quantity, question: str) -> Unit | None:
    """The unit of a number; if it has none, the one of the other's dimension that the question names."""
    if of.unit is not None or beside.unit is None or of.noun:
        return of.unit
    alike = {unit for unit in UNITS.values() if unit.dimension == beside.unit.dimension and unit in units_of(question)}
    return alike.pop() if len(alike) == 1 else None


def _may_be_said(of: Quantity, beside: Quantity, question: str) -> bool:
    if not of.noun or of.noun == beside.noun or (of.noun in _PEOPLE and _RE.population.search(question)):
        return True
    is_of_question = is_foreign(question) and {*of.noun.split()} <= {*_RE.words.findall(question.casefold())}
    return is_of_question or any(of.noun in _singular_too(match[1]) for match in _RE.counted.finditer(question))


def _singular_too(phrase: str) -> set[str]:
    """Nouns that "how many red apples are" may count: every run of up to two of its words, in the plural or not."""
    words = phrase.casefold().split()
    runs = {" ".join(words[start : start + length]) for length in (1, 2) for start in (0, 1)}
    return runs | {run.removesuffix("s") for run in runs} | ({"persons", "person"} if "people" in runs else set())


def _digits(text: str) -> str:
    """The number as written, without its unit and the spelling of its fraction."""
    return "/".join(re.findall(r"\d+(?:\.\d*)?|\.\d+", text.replace(",", "")))
