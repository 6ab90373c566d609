"""The numbers that a hint makes secret: its own, what follows from them, and how they are spelled.

Public are numbers that anyone can read: in the question, its choices and answer, and the images' sizes. Numbers of one
digit are nobody's secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pipelines.cases import Case

_NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ONLY_NUMBERS = re.compile(r"[\d\s.,;:()\[\]x-]+")
_ONES: tuple[str, ...] = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_ONES += ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_LEAST = 10
_FRACTION_DIGITS = (2, 3, 4, 5)


def secret_numbers(case: Case) -> set[float]:
    """Numbers that may stand in programs and nowhere else."""
    secret = {number for value in case.hint.values() for number in _numbers_of_hint(value, case)}
    return {number for number in secret if number >= _LEAST or number % 1} - _public(case)


def spelled(number: float) -> str | None:
    """``forty-seven``, ``two hundred ten``: how a whole number below ten thousand is written out; else None."""
    if number % 1 or not _LEAST <= number < 10_000:
        return None
    return _words(int(number))


def numbers_in(text: str) -> set[float]:
    """The values of all numerals, a comma between three digits read as nothing and as a comma."""
    return {float(number) for read in (text, _THOUSANDS.sub("", text)) for number in _NUMBER.findall(read)}


def spelled_in(text: str, numbers: set[float]) -> list[float]:
    """Those of the numbers that the text writes out in words."""
    plain = f" {' '.join(re.sub(r'[^a-z]+', ' ', text.lower()).replace(' and ', ' ').split())} "
    return sorted(
        number for number in numbers if (words := spelled(number)) and f" {words.replace('-', ' ')} " in plain
    )


def _numbers_of_hint(value: object, case: Case) -> Iterator[float]:
    """Only values that are numbers: a solution in prose is not secret word by word."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return
    if isinstance(value, str) and not _ONLY_NUMBERS.fullmatch(value):
        return
    numbers = [float(number) for number in _NUMBER.findall(str(value))]
    yield from numbers
    if len(numbers) == 1:
        yield from _as_angle(numbers[0])
    if len(numbers) == 4:
        yield from _as_box(numbers, case)


def _as_angle(angle: float) -> Iterator[float]:
    if 0 < angle < 360:
        yield 360 - angle


def _as_box(corners: Sequence[float], case: Case) -> Iterator[float]:
    x1, y1, x2, y2 = corners
    yield from (x2 - x1, y2 - y1)
    if case.trajectory.images:
        image = case.trajectory.images[0]
        sides = (x1 / image.width, y1 / image.height, x2 / image.width, y2 / image.height)
        yield from (
            round(side, digits) for side in sides for digits in _FRACTION_DIGITS if 0 < side < 1 and side * 10 % 1
        )


def _public(case: Case) -> set[float]:
    sample = case.sample
    sizes = [f"{image.width} {image.height}" for image in case.trajectory.images]
    return numbers_in(" ; ".join([sample.question, *sample.choices, sample.answer, *sizes]))


def _words(number: int) -> str:
    if number >= 1000:
        rest = number % 1000
        return f"{_words(number // 1000)} thousand{f' {_words(rest)}' if rest else ''}"
    if number >= 100:
        rest = number % 100
        return f"{_ONES[number // 100]} hundred{f' {_words(rest)}' if rest else ''}"
    if number >= 20:
        return _TENS[number // 10 - 2] + (f"-{_ONES[number % 10]}" if number % 10 else "")
    return _ONES[number]
