"""Characters that nobody sees: zero-width letters, marks of direction, tags, lone surrogates, private letters.

An answer that holds one which the expected answer does not hold is refused, never cleaned: what a person reads in it
and what a program compares are two texts. Spellings that are *compatible* (fullwidth digits, mathematical letters) are
visible and the same by decision; letters of another script that only look alike (homoglyphs) are other letters.
"""

from __future__ import annotations

import unicodedata

from pipelines.grading.base import Grade, refused
from pipelines.records import Sample

_UNSEEN = frozenset({"Cf", "Cs", "Co", "Cc"})
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0" + "".join(map(chr, range(0xFE00, 0xFE10))))
_SPACES = frozenset("\t\n\r")


def hidden(text: str) -> frozenset[str]:
    """The characters of ``text`` that are not seen, spaces and line ends aside."""
    return frozenset(letter for letter in set(text) - _SPACES if _is_unseen(letter))


def hidden_in(given: str, sample: Sample) -> Grade | None:
    """The refusal of an answer that hides something; None where it does not."""
    found = sorted(hidden(given) - hidden(sample.answer))
    return (
        refused(given, sample, f"unseen characters: {', '.join(f'U+{ord(one):04X}' for one in found[:5])}")
        if found
        else None
    )


def _is_unseen(letter: str) -> bool:
    return letter in _BLANK or unicodedata.category(letter) in _UNSEEN
