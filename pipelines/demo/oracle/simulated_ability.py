"""The simulated student: how often it is right on a sample, and the wrong answers that it gives.

The share is drawn from the sample's id, so that pass rates of every kind come about: some samples are never
solved, some always, most are in between. A tiny target is seen less well, and gains from a closer look.
"""

import re
from random import Random

from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.answers import split_choice
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.verification.grading import grader_of
from darkroom.pipelines.verification.grading.boxes import read_box
from darkroom.pipelines.verification.grading.lists import elements

NEVER = ALWAYS = 0.12
"""Shares of the samples that are never and always answered rightly."""
LOWEST, HIGHEST = 0.2, 0.8
TINY, LARGE = 0.004, 0.06
"""Shares of the image that a target covers."""
_SEEN_OF_TINY, _GAINED_UP_CLOSE, _KEPT_OF_LARGE = 0.5, 0.7, 0.9
_GAINED_BY_DRAWING = 0.3


def competence(sample: Sample) -> float:
    """The share of answers without tools that are right; trivial questions are always answered."""
    if details_of(sample).get("planted") == "trivial":
        return 1.0
    place = Random(seed_from("rl/competence", sample.sample_id)).random()
    if place < NEVER:
        return 0.0
    if target_share(sample) < TINY:
        return _SEEN_OF_TINY * _middle(min(place, 1 - ALWAYS))
    return 1.0 if place >= 1 - ALWAYS else _middle(place)


def competence_with_tools(sample: Sample) -> float:
    """The same after a closer look at an image, or after a drawing where there is none."""
    without = competence(sample)
    if not sample.images:
        return _raised(without, _GAINED_BY_DRAWING) if details_of(sample).get("suitable") else without
    share = target_share(sample)
    if share < TINY:
        return _raised(without, _GAINED_UP_CLOSE)
    return _KEPT_OF_LARGE * without if share >= LARGE else without


def target_share(sample: Sample) -> float:
    """How much of its image the first target covers; 1.0 where none is known."""
    if not sample.truth.boxes or not sample.images:
        return 1.0
    target = sample.truth.boxes[0]
    image = sample.images[target.image]
    return target.box.area / (image.width * image.height)


def _middle(place: float) -> float:
    return LOWEST + (HIGHEST - LOWEST) * (place - NEVER) / (1 - NEVER - ALWAYS)


def _raised(share: float, gain: float) -> float:
    return share + gain * (1 - share)


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


def slip(sample: Sample, rng: Random) -> str:
    """An answer to the sample's question that is not the right one, and reads as if it could be."""
    right = right_answer(sample)
    if sample.choices:
        others = [letter for letter, _ in map(split_choice, sample.choices) if letter != right]
        return rng.choice(others) if others else "none of these"
    grader = grader_of(sample)
    if grader.kind == "box" and (box := read_box(right)) is not None:
        return _part(box, rng)
    if grader.kind == "list" and len(parts := list(elements(right))) > 1:
        parts.pop(rng.randrange(len(parts)))
        return ", ".join(parts)
    if _FIGURES.search(right):
        return _other_number(right, grader.tolerance, rng)
    return f"2{right}" if right.startswith("\\") else _other_words(right, rng)


def _part(box: tuple[float, float, float, float], rng: Random) -> str:
    """A quarter of the box: it overlaps with the whole by a quarter."""
    x1, y1, x2, y2 = map(round, box)
    width, height = max(1, (x2 - x1) // 2), max(1, (y2 - y1) // 2)
    x, y = rng.choice((x1, x2 - width)), rng.choice((y1, y2 - height))
    return str([x, y, x + width, y + height])


def _other_number(right: str, tolerance: float, rng: Random) -> str:
    """``right`` with its first number changed: beyond the tolerance, or by little where there is none."""
    number = _FIGURES.search(right)
    assert number is not None
    whole, _, decimals = number[0].partition(".")
    value = int(whole + decimals)
    least = int(3 * tolerance * value) + 1
    steps = [least, 2 * least, -least] if value > least else [least, 2 * least]
    figures = str(value + rng.choice(steps)).zfill(len(whole + decimals))
    spelled = f"{figures[: -len(decimals)]}.{figures[-len(decimals) :]}" if decimals else figures
    return f"{right[: number.start()]}{spelled}{right[number.end() :]}"


def _other_words(right: str, rng: Random) -> str:
    words = re.findall(r"\w+|\W+", right)
    for place, word in enumerate(words):
        plain = word.casefold()
        if plain in _COLOURS:
            words[place] = rng.choice([colour for colour in _COLOURS if colour != plain])
            return "".join(words)
        if plain in _TURNED:
            words[place] = _TURNED[plain]
            return "".join(words)
    return _misread(right, rng) if len(right.split()) <= _LONGEST_READ else "It cannot be made out."


def _misread(right: str, rng: Random) -> str:
    """Every third letter is taken for another."""
    start = rng.randrange(min(3, len(right)))
    letters = [letter.translate(_MISREAD) if n % 3 == start else letter for n, letter in enumerate(right)]
    misread = "".join(letters)
    return misread if misread != right else "illegible"
