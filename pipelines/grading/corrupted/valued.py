"""Corrupted numbers and expressions: a digit, a sign, a point, a unit, a constant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from pipelines.grading.corrupted.base import Corruption
from pipelines.grading.numeric import with_unit
from pipelines.grading.quantity import Quantity, read_quantity
from pipelines.grading.spelling import bare
from pipelines.grading.units import UNITS
from pipelines.records import Grader, Sample

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?|\.\d+", re.ASCII)
_FOREIGN = {"length": "kg", "length in feet": "kg", "mass": "cm", "ratio": "cm"}


def numbers(sample: Sample, grader: Grader) -> Iterator[Corruption]:
    """Other numbers: those farther off than the tolerance allows."""
    answer = bare(sample.answer)
    for corruption in (*_altered(answer), *_other_units(answer, grader.unit)):
        if _is_another(corruption.text, answer, grader):
            yield corruption


def expressions(sample: Sample) -> Iterator[Corruption]:
    """A constant changed, a sign turned, something added."""
    answer = bare(sample.answer)
    # few: each costs a comparison by math-verify
    yield from (one for one in _altered(answer) if one.kind in ("digit changed", "two numbers"))
    turned = {"+": "-", "-": "+"}
    if found := re.search(r"(?<=[\w})])\s*([+-])", answer):
        yield Corruption("sign turned", answer[: found.start(1)] + turned[found[1]] + answer[found.end(1) :])
    yield Corruption("something added", f"{answer}+1")


def rival_number(answer: str) -> str:
    """Another number, spelled like ``answer``."""
    return next((one.text for one in _altered(answer)), f"{answer}1")


def _altered(answer: str) -> Iterator[Corruption]:
    found = _NUMBER.search(answer)
    if found is None:
        return
    before, number, after = answer[: found.start()], found[0], answer[found.end() :]
    first = re.search(r"[1-9]", number)
    if first:
        changed = str(int(first[0]) % 9 + 1)
        yield Corruption("digit changed", before + number[: first.start()] + changed + number[first.end() :] + after)
    last = str((int(number[-1]) + 1) % 10)
    yield Corruption("digit changed", f"{before}{number[:-1]}{last}{after}")
    yield Corruption("digit more", f"{before}{number}7{after}")
    yield Corruption(
        "sign turned", f"{before[:-1]}{number}{after}" if before.endswith("-") else f"{before}-{number}{after}"
    )
    yield Corruption("point moved", f"{before}{_shifted(number)}{after}")
    yield Corruption("two numbers", f"{before}{number}, {number}7{after}")
    yield Corruption("two numbers", f"{before}{number} {number}{after}")


def _shifted(number: str) -> str:
    whole, _, decimals = number.replace(",", "").partition(".")
    return f"{whole}{decimals[:1]}.{decimals[1:]}" if len(decimals) > 1 else f"{whole}{decimals}0"


def _other_units(answer: str, unit: str) -> Iterator[Corruption]:
    own = read_quantity(with_unit(answer, unit))
    found = _NUMBER.search(answer)
    if own is None or found is None or own.unit is None:
        return
    foreign = _FOREIGN.get(own.unit.dimension, "cm")
    yield Corruption("other unit", f"{answer[: found.end()]} {foreign}")
    for other in {one.names[0]: one for one in UNITS.values()}.values():
        if other.dimension == own.unit.dimension and other != own.unit:
            yield Corruption("other unit", f"{found[0]} {other.names[0]}")


def _is_another(text: str, answer: str, grader: Grader) -> bool:
    one, own = (read_quantity(with_unit(part, grader.unit)) for part in (text, answer))
    if one is None or own is None or _dimension(one) != _dimension(own):
        return True
    apart = abs(_base(one) - _base(own))
    return apart > Fraction(str(grader.tolerance)) * abs(_base(own))


def _dimension(quantity: Quantity) -> str:
    return quantity.unit.dimension if quantity.unit else quantity.noun


def _base(quantity: Quantity) -> Fraction:
    return quantity.value * (quantity.unit.factor if quantity.unit else 1)
