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


class Forms:
    """Every form of some sentences, made when it is asked for."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [_parts(text) for text in texts]
        self._sizes = [math.prod(map(len, parts)) for parts in self._texts]

    def __len__(self) -> int:
        return sum(self._sizes)

    def __getitem__(self, place: int) -> str:
        for parts, size in zip(self._texts, self._sizes, strict=True):
            if 0 <= place < size:
                return _form(parts, place)
            place -= size
        raise IndexError("there are fewer forms")


def nth_form(texts: Sequence[str], n: int) -> str:
    """One form of all: another one for every ``n`` below their number, and neighbours far apart."""
    forms = Forms(texts)
    return forms[n * _STEP % len(forms)]


_STEP = 7919
"""A prime that divides no number of forms here."""


def some_form(texts: Sequence[str], rng: Random) -> str:
    """A form of one of the texts: one with many forms is not more likely than the others."""
    return one_form(rng.choice(texts), rng)


def one_form(text: str, rng: Random) -> str:
    """Some form of one text."""
    return rng.choice(Forms([text]))


def _parts(text: str) -> list[list[str]]:
    """Fixed pieces and alternatives in turn."""
    pieces = _CHOICE.split(text)
    return [piece.split("|") if n % 2 else [piece] for n, piece in enumerate(pieces)]


def _form(parts: Sequence[Sequence[str]], place: int) -> str:
    words = []
    for alternatives in parts:
        place, which = divmod(place, len(alternatives))
        words.append(alternatives[which])
    return re.sub(r" +(?=[ ,.;:])", "", "".join(words)).strip()
