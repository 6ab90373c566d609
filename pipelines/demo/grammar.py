"""Sentences in many forms: ``"It [leans|tilts] [to the left|leftwards]."`` stands for four.

    some_form(says["seen"], random)             # one form of one of the texts, each text as likely as any other
    one_form("[So|Then] I look.", random)

An alternative may be empty. Alternatives do not nest. Slots (``{label}``) stay as they are.
"""

import math
import re
from collections.abc import Sequence
from random import Random

_CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")


_STEP = 7919
"""A prime that divides no number of forms here."""


def nth_form(texts: Sequence[str], n: int) -> str:
    """One form of all: another one for every ``n`` below their number, and neighbours far apart."""
    of_texts = [_parts(text) for text in texts]
    place = n * _STEP % sum(map(_n_forms, of_texts))
    for parts in of_texts:
        if place < _n_forms(parts):
            break
        place -= _n_forms(parts)
    return _form(parts, place)


def some_form(texts: Sequence[str], rng: Random) -> str:
    """A form of one of the texts: one with many forms is not more likely than the others."""
    return one_form(rng.choice(texts), rng)


def one_form(text: str, rng: Random) -> str:
    """Some form of one text."""
    parts = _parts(text)
    return _form(parts, rng.randrange(_n_forms(parts)))


def _parts(text: str) -> list[list[str]]:
    return [piece.split("|") if n % 2 else [piece] for n, piece in enumerate(_CHOICE.split(text))]


def _n_forms(parts: Sequence[Sequence[str]]) -> int:
    return math.prod(map(len, parts))


def _form(parts: Sequence[Sequence[str]], place: int) -> str:
    words = []
    for alternatives in parts:
        place, which = divmod(place, len(alternatives))
        words.append(alternatives[which])
    return re.sub(r" +(?=[ ,.;:])", "", "".join(words)).strip()
