r"""Lists: every element that is expected, none more, none less; in the expected order where the question asks for one.

``red, green and blue``, ``red; green; blue``, ``["red", "green", "blue"]``, one per line with or without bullets.
Elements are compared as numbers where both are numbers, else as words. Lists in lists and expressions are not covered.
"""

import re
from collections.abc import Sequence

from pipelines.verification.grading.answer_text import bare, levels
from pipelines.verification.grading.numeric import in_digits, same_number
from pipelines.verification.grading.text_match import same_words

MAX_ELEMENTS = 64
_COMMA = re.compile(r",\s+|(?<!\d),|,(?!\d{3}(?!\d))")
"""A comma that groups no digits: ``1,200, 3`` are two numbers, ``1,2,3`` three, ``1,200`` is one."""
_AND = re.compile(r"(?<!\s)\s++(?:and|&)\s+", re.IGNORECASE)
_LAST = re.compile(r"\A(?:and|&)\s+", re.IGNORECASE)
_BOTH = re.compile(r"\Aboth\s+(?=\S)", re.IGNORECASE)
_BULLET = re.compile(r"\A\s*(?:[-*•]|\(?\d{1,2}[.)])\s+", re.ASCII)
_SURROUNDED = re.compile(r"\A(?:\[(.*)\]|\\?\{(.*?)\\?\}|\((.*)\))\Z", re.DOTALL)


def same_list(
    answer: str, expected: str, *, question: str = "", is_ordered: bool = False, tolerance: float = 0
) -> bool:
    """Whether ``answer`` has the elements of ``expected``, split at commas alone or at every "and" too."""
    for at_and in (True, False):
        parts, expected_parts = elements(answer, at_and=at_and), elements(expected, at_and=at_and)
        compared = _in_order if is_ordered else _paired
        if parts and len(parts) == len(expected_parts) and compared(parts, expected_parts, question, tolerance):
            return True
    return False


def elements(text: str, *, at_and: bool = True) -> tuple[str, ...]:
    """The elements of a list as it is written; none where one is empty or there are too many of them."""
    inner = _without_brackets(bare(text))
    if "\n" in inner:
        parts = [_BULLET.sub("", line) for line in inner.splitlines() if line.strip()]
    elif ";" in inner:
        parts = _split(inner, re.compile(";"))
    else:
        parts = _split(inner, _COMMA)
    parts = [_LAST.sub("", part.strip().removesuffix(",")) for part in parts]
    if at_and:
        parts = [piece for part in parts for piece in _split(_BOTH.sub("", part), _AND)]
    stripped = tuple(part.strip() for part in parts)
    return stripped if all(stripped) and len(stripped) <= MAX_ELEMENTS else ()


def same_element(element: str, expected: str, *, question: str, tolerance: float) -> bool:
    """Two elements, as numbers if both are, else as words."""
    number, expected_number = in_digits(bare(element)), in_digits(bare(expected))
    same = same_number(number, expected_number, question=question, tolerance=tolerance)
    return same_words(element, expected) if same is None else same


def _in_order(parts: Sequence[str], expected_parts: Sequence[str], question: str, tolerance: float) -> bool:
    pairs = zip(parts, expected_parts, strict=True)
    return all(same_element(part, expected, question=question, tolerance=tolerance) for part, expected in pairs)


def _paired(parts: Sequence[str], expected_parts: Sequence[str], question: str, tolerance: float) -> bool:
    """Whether each element finds one of its own; the first that fits is taken."""
    remaining = list(expected_parts)
    for part in parts:
        fits = (
            n
            for n, expected in enumerate(remaining)
            if same_element(part, expected, question=question, tolerance=tolerance)
        )
        place = next(fits, None)
        if place is None:
            return False
        remaining.pop(place)
    return True


def _without_brackets(text: str) -> str:
    match = _SURROUNDED.match(text)
    inner = next((group for group in match.groups() if group is not None), text) if match else text
    return inner.strip() if all(level >= 0 for level in levels(inner)) else text


def _split(text: str, separator: re.Pattern[str]) -> list[str]:
    """Split where no bracket is open: ``(1, 2), (3, 4)`` are two."""
    depths, parts, end = levels(text), list[str](), 0
    for match in separator.finditer(text):
        if not depths[match.start()]:
            parts.append(text[end : match.start()])
            end = match.end()
    return [*parts, text[end:]]
