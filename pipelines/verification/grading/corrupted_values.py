"""Corrupted numbers, expressions and boxes: a digit, a sign, a unit, a constant; a box moved, grown, turned inside
out."""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from darkroom.pipelines.records import Grader, Sample
from darkroom.pipelines.records.geometry import iou
from darkroom.pipelines.verification.grading.answer_text import bare
from darkroom.pipelines.verification.grading.boxes import LEAST_OVERLAP, Corners, read_box
from darkroom.pipelines.verification.grading.numeric import with_unit
from darkroom.pipelines.verification.grading.quantity import UNITS, Quantity, read_quantity


class Corruption(NamedTuple):
    """A wrong answer. ``kind`` says in which way it is wrong."""

    kind: str
    text: str


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
    yield from (corruption for corruption in _altered(answer) if corruption.kind in ("digit changed", "two numbers"))
    turned = {"+": "-", "-": "+"}
    if sign := re.search(r"(?<=[\w})])\s*([+-])", answer):
        yield Corruption("sign turned", answer[: sign.start(1)] + turned[sign[1]] + answer[sign.end(1) :])
    yield Corruption("something added", f"{answer}+1")


def rival_number(answer: str) -> str:
    """Another number, spelled like ``answer``."""
    return next((corruption.text for corruption in _altered(answer)), f"{answer}1")


def _altered(answer: str) -> Iterator[Corruption]:
    match = _NUMBER.search(answer)
    if match is None:
        return
    before, number, after = answer[: match.start()], match[0], answer[match.end() :]
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
    match = _NUMBER.search(answer)
    if own is None or match is None or own.unit is None:
        return
    foreign = _FOREIGN.get(own.unit.dimension, "cm")
    yield Corruption("other unit", f"{answer[: match.end()]} {foreign}")
    for unit_beside in {entry.names[0]: entry for entry in UNITS.values()}.values():
        if unit_beside.dimension == own.unit.dimension and unit_beside != own.unit:
            yield Corruption("other unit", f"{match[0]} {unit_beside.names[0]}")


def _is_another(text: str, answer: str, grader: Grader) -> bool:
    rival, own = (read_quantity(with_unit(part, grader.unit)) for part in (text, answer))
    if rival is None or own is None or _dimension(rival) != _dimension(own):
        return True
    apart = abs(_base(rival) - _base(own))
    return apart > Fraction(str(grader.tolerance)) * abs(_base(own))


def _dimension(quantity: Quantity) -> str:
    return quantity.unit.dimension if quantity.unit else quantity.noun


def _base(quantity: Quantity) -> Fraction:
    return quantity.value * (quantity.unit.factor if quantity.unit else 1)


_BELOW = 0.98
"""How far below the bound a box is put, as a share of it."""


def boxes(sample: Sample, grader: Grader) -> Iterator[Corruption]:
    """Other boxes and no boxes. Nothing where the expected answer is none."""
    own = read_box(sample.answer)
    if own is None:
        return
    least = grader.tolerance or LEAST_OVERLAP
    for kind, box in _others(own, least * _BELOW):
        if iou(box, own) < least:
            yield Corruption(kind, spelled(box))
    # a box that is most of its image is not told from the image: that is for the grader to show
    for image in sample.images[:1]:
        yield Corruption("whole image", spelled((0, 0, image.width, image.height)))
    x1, y1, x2, y2 = own
    yield Corruption("turned inside out", spelled((x2, y2, x1, y1)))
    yield Corruption("sides swapped", spelled((x1, x2, y1, y2)) if y1 >= y2 or x1 >= x2 else spelled((x2, y1, x1, y2)))
    yield Corruption("two boxes", f"{spelled(own)} {spelled(own)}")
    yield Corruption("two boxes", f"[{spelled(own)}, {spelled((0, 0, 1, 1))}]")
    yield Corruption("three corners", f"[{x1:g}, {y1:g}, {x2:g}]")
    yield from (
        Corruption("not finite", f"[{x1:g}, {y1:g}, {x2:g}, {value}]") for value in ("NaN", "Infinity", "1e999")
    )
    if max(own) > 1:
        yield Corruption("in fractions", "[0.1, 0.1, 0.9, 0.9]")


def spelled(box: Corners) -> str:
    """``[x1, y1, x2, y2]``."""
    return f"[{', '.join(f'{side:.10g}' for side in box)}]"


def rival_box(answer: str) -> str:
    """A box beside the one that ``answer`` is."""
    own = read_box(answer)
    return "[0, 0, 1, 1]" if own is None else spelled(_moved(own, 3.0, 3.0))


def _others(own: Corners, below: float) -> Iterator[tuple[str, Corners]]:
    x1, y1, x2, y2 = own
    # two equal boxes, one moved by a share m of its width: IoU = (1 - m) / (1 + m)
    share = (1 - below) / (1 + below)
    yield "moved just too far", _moved(own, share, 0)
    yield "moved just too far", _moved(own, 0, -share)
    yield "moved away", _moved(own, 2, 2)
    yield "grown", (x1, y1, x1 + (x2 - x1) / below, y2)
    yield "shrunk", (x1, y1, x2, y1 + (y2 - y1) * below)


def _moved(box: Corners, across: float, down: float) -> Corners:
    x1, y1, x2, y2 = box
    dx, dy = across * (x2 - x1), down * (y2 - y1)
    return (x1 + dx, y1 + dy, x2 + dx, y2 + dy)
