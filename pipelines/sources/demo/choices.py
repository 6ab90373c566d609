"""Lettered choices of a question, the right one at a place that the caller balances over its rows."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

LETTERS = "ABCDEFGH"


class Choices(NamedTuple):
    """Options as shown (``"B. blue"``) and the right one's letter; without options, the answer itself."""

    options: tuple[str, ...]
    answer: str


def lettered(right: str, wrong: Sequence[str], *, place: int, rng: Random) -> Choices:
    """All options in a seeded order, ``right`` at ``place`` modulo their number."""
    options = rng.sample(list(wrong), len(wrong))
    place %= len(options) + 1
    options.insert(place, right)
    return Choices(
        tuple(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False)), LETTERS[place]
    )


def in_order(right: str, options: Sequence[str]) -> Choices:
    """Options that have an order of their own (numbers, a chart's bars), left in it."""
    lines = tuple(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))
    return Choices(lines, LETTERS[list(options).index(right)])
