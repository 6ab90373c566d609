"""Finds a text that goes round in circles while it is being written (Thyme §4.3, Sampling Optimization).

Every substring of a fixed length is counted by a Rabin-Karp rolling hash. When the places of one of them cover more
than half of all that was written, the text repeats itself. A substring of one length covers less than half of a circle
of twice its length, so several lengths are looked at.

A table of numbers is no circle: substrings without a letter count only in a text that is long enough to be sure. Nor
is a program that was mended twice: a circle comes round ``TIMES``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WINDOWS = (40, 80, 160, 320, 640)
"""Characters of a substring. The shortest is longer than what lists, tables and programs repeat by their nature."""
SHARE = 0.5
"""Of the whole text; the paper's."""
TIMES = 5
"""Places that do not overlap; the paper names no number."""
MIN_CHARS = 800
"""No shorter text is called repetitive; nor does the paper name a least length."""
MIN_CHARS_WITHOUT_LETTERS = 4000
_BASE, _MODULUS = 257, (1 << 61) - 1


class Repetition:
    """Watches one text, character by character, in constant time for each."""

    def __init__(self) -> None:
        self._text: list[int] = []
        self._last_letter = -1
        self._windows = [_Window(length) for length in WINDOWS]

    def feed(self, text: str) -> bool:
        """Takes the next piece; whether the text so far is repetitive."""
        for character in text:
            if character.isalpha():
                self._last_letter = len(self._text)
            self._text.append(ord(character))
            for window in self._windows:
                window.slide(self._text, self._last_letter)
        return self.found

    @property
    def found(self) -> bool:
        """Whether one substring covers more than ``SHARE`` of the text so far."""
        n_chars = len(self._text)
        return any(
            (n_chars >= MIN_CHARS and window.most_worded > SHARE * n_chars)
            or (n_chars >= MIN_CHARS_WITHOUT_LETTERS and window.most_bare > SHARE * n_chars)
            for window in self._windows
        )


@dataclass(slots=True)
class _Places:
    """Of one substring: where it began last, how often without overlap, how many characters it covers."""

    last: int
    apart: int
    n_apart: int
    covered: int


@dataclass(slots=True)
class _Window:
    """All substrings of one length. ``most_…``: the most characters that one covers, with letters and without."""

    length: int
    most_worded: int = 0
    most_bare: int = 0
    _hash: int = 0
    _leading: int = 0
    _places: dict[int, _Places] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._leading = pow(_BASE, self.length - 1, _MODULUS)

    def slide(self, text: list[int], last_letter: int) -> None:
        """Over the last character of ``text``."""
        at = len(text) - 1
        if at >= self.length:
            self._hash = (self._hash - text[at - self.length] * self._leading) % _MODULUS
        self._hash = (self._hash * _BASE + text[at]) % _MODULUS
        start = at - self.length + 1
        if start >= 0:
            self._count(start, has_letter=last_letter >= start)

    def _count(self, start: int, *, has_letter: bool) -> None:
        """Overlapping places cover no character twice."""
        places = self._places.get(self._hash)
        if places is None:
            self._places[self._hash] = _Places(start, start, 1, self.length)
            return
        places.covered += min(self.length, start - places.last)
        places.last = start
        if start - places.apart >= self.length:
            places.apart, places.n_apart = start, places.n_apart + 1
        if places.n_apart < TIMES:
            return
        if has_letter:
            self.most_worded = max(self.most_worded, places.covered)
        else:
            self.most_bare = max(self.most_bare, places.covered)
