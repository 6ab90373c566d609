"""Privileged facts must not show: a trained model never has them, so an example must not lean on them.

Secret are the numbers of the hint and what follows from them. Public are numbers that anyone can read: in the question,
its choices and answer, and the images' sizes. Numbers of one digit are never secret. A trajectory that was converted
from a solution must not mention that solution.
"""

import re
import tokenize
from collections.abc import Iterator, Sequence

from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.base import CheckResult, Flaw, check, failed, passed
from darkroom.pipelines.verification.checks.hint_phrases import (
    hint_name,
    hint_phrase,
    phrases,
    reads_file_name,
    tokens,
    unseen_phrase,
)
from darkroom.pipelines.verification.grading.number_words import ONES, TENS

_NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ONLY_NUMBERS = re.compile(r"[\d\s.,;:()\[\]x-]+")
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
    if len(numbers) == 1 and 0 < numbers[0] < 360:
        yield 360 - numbers[0]
    if len(numbers) == 4:
        yield from _as_box(numbers, case)


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
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if number >= size:
            return f"{_words(number // size)} {name}{f' {_words(number % size)}' if number % size else ''}"
    if number >= 20:
        return TENS[number // 10 - 2] + (f"-{ONES[number % 10]}" if number % 10 else "")
    return ONES[number]


@check(version=3)
def hint_stays_hidden(case: Case) -> CheckResult:
    """No thought, comment or name repeats a number of the hint, speaks of being told, or reads it from a file's name.

    Numbers count however they are spelled (1200, 1,200, 1200.0, 1200x800, twelve hundred's digits in words), with what
    follows from them: a box's width and height and its corners as fractions, the angle that undoes an angle.
    """
    secret = secret_numbers(case)
    for where, text in _prose(case):
        if mention := hint_phrase(text):
            return failed(Flaw.HINT_MENTIONED, f"{where} says {mention!r}")
        if leaked := sorted({*secret.intersection(numbers_in(text)), *spelled_in(text, secret)}):
            numbers = ", ".join(f"{number:g}" for number in leaked)
            return failed(Flaw.HINT_NUMBER, f"{where} repeats {numbers} from the hint")
    for turn in case.trajectory.rounds[:1]:
        if mention := unseen_phrase(turn.thought):
            return failed(Flaw.HINT_MENTIONED, f"the thought before the first look says {mention!r}")
    for n, turn in enumerate(case.trajectory.rounds, 1):
        if name := hint_name(turn.code):
            return failed(Flaw.HINT_MENTIONED, f"the program of round {n} has the name {name!r}")
        if reads_file_name(turn.code):
            return failed(Flaw.HINT_MENTIONED, f"the program of round {n} makes a number of the file's name")
    return passed()


def _prose(case: Case) -> Iterator[tuple[str, str]]:
    for n, turn in enumerate(case.trajectory.rounds, 1):
        yield f"the thought of round {n}", turn.thought
        yield f"a comment of round {n}", "\n".join(comments(turn.code))
    yield "the final thought", case.trajectory.final_thought


def comments(code: str) -> Iterator[str]:
    """The comments of code, and texts that stand alone or explain a function."""
    previous = tokenize.NEWLINE
    for token in tokens(code):
        stands_alone = previous in (tokenize.NEWLINE, tokenize.INDENT, tokenize.NL, tokenize.ENCODING)
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and stands_alone):
            yield token.string
        previous = token.type


@check()
def solution_stays_hidden(case: Case) -> CheckResult:
    """No thought and no line of a program speaks of a solution or an answer that was there before."""
    for where, text in _thoughts_and_code(case):
        if mention := phrases("solution").search(text):
            return failed(Flaw.HINT_MENTIONED, f"{where} says {mention[0]!r}")
    return passed()


def _thoughts_and_code(case: Case) -> Iterator[tuple[str, str]]:
    for n, turn in enumerate(case.trajectory.rounds, 1):
        yield f"the thought of round {n}", turn.thought
        yield f"the program of round {n}", turn.code.replace("_", " ")
    yield "the final thought", case.trajectory.final_thought
