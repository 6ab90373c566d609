"""Wrong answers as a model gives them: another choice, a number beside the right one, a word misread, half a box."""

from __future__ import annotations

import re
from random import Random

from pipelines.answers import split_choice
from pipelines.grading import grader_of
from pipelines.grading.boxes import read_box
from pipelines.grading.lists import elements
from pipelines.records import Sample
from pipelines.worked import details_of

_FIGURES = re.compile(r"\d+(?:\.\d+)?")
_COLOURS = ("red", "orange", "yellow", "green", "blue", "violet", "brown", "black", "white", "grey")
_TURNED = {"left": "right", "up": "down", "above": "below", "inside": "outside", "yes": "no", "first": "last"}
_TURNED |= {other: one for one, other in _TURNED.items()}
_VOWELS, _CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
_MISREAD = {
    ord(one): other
    for letters in (_VOWELS, _CONSONANTS)
    for one, other in zip(letters, letters[1:] + letters[0], strict=True)
}
_MISREAD |= {ord(chr(one).upper()): other.upper() for one, other in _MISREAD.items()}
_LONGEST_READ = 4
"""Words: a longer text without a word to turn round is not misread but given up."""


def right_answer(sample: Sample) -> str:
    """The true answer: the sample's, or the one that its source knows to be true where the label is planted wrong."""
    return str(details_of(sample).get("true_answer", sample.answer))


def slip(sample: Sample, draw: Random) -> str:
    """An answer to the sample's question that is not the right one, and reads as if it could be."""
    right = right_answer(sample)
    if sample.choices:
        others = [letter for letter, _ in map(split_choice, sample.choices) if letter != right]
        return draw.choice(others) if others else "none of these"
    grader = grader_of(sample)
    if grader.kind == "box" and (box := read_box(right)) is not None:
        return _part(box, draw)
    if grader.kind == "list" and len(parts := list(elements(right))) > 1:
        parts.pop(draw.randrange(len(parts)))
        return ", ".join(parts)
    if _FIGURES.search(right):
        return _other_number(right, grader.tolerance, draw)
    return f"2{right}" if right.startswith("\\") else _other_words(right, draw)


def _part(box: tuple[float, float, float, float], draw: Random) -> str:
    """A quarter of the box: it overlaps with the whole by a quarter."""
    x1, y1, x2, y2 = map(round, box)
    width, height = max(1, (x2 - x1) // 2), max(1, (y2 - y1) // 2)
    left, top = draw.choice((x1, x2 - width)), draw.choice((y1, y2 - height))
    return str([left, top, left + width, top + height])


def _other_number(right: str, tolerance: float, draw: Random) -> str:
    """``right`` with its first number changed: beyond the tolerance, or by little where there is none."""
    found = _FIGURES.search(right)
    assert found is not None
    whole, _, decimals = found[0].partition(".")
    value = int(whole + decimals)
    least = int(3 * tolerance * value) + 1
    steps = [least, 2 * least, -least] if value > least else [least, 2 * least]
    figures = str(value + draw.choice(steps)).zfill(len(whole + decimals))
    other = f"{figures[: -len(decimals)]}.{figures[-len(decimals) :]}" if decimals else figures
    return f"{right[: found.start()]}{other}{right[found.end() :]}"


def _other_words(right: str, draw: Random) -> str:
    words = re.findall(r"\w+|\W+", right)
    for place, word in enumerate(words):
        plain = word.casefold()
        if plain in _COLOURS:
            words[place] = draw.choice([colour for colour in _COLOURS if colour != plain])
            return "".join(words)
        if plain in _TURNED:
            words[place] = _TURNED[plain]
            return "".join(words)
    return _misread(right, draw) if len(right.split()) <= _LONGEST_READ else "It cannot be made out."


def _misread(right: str, draw: Random) -> str:
    """Every third letter is taken for another."""
    start = draw.randrange(min(3, len(right)))
    letters = [letter.translate(_MISREAD) if n % 3 == start else letter for n, letter in enumerate(right)]
    misread = "".join(letters)
    return misread if misread != right else "illegible"
