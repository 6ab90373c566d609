"""Finds a text that goes round in circles while it is being written (Thyme §4.3, Sampling Optimization).

Every substring of ``WINDOW`` characters is counted by a Rabin-Karp rolling hash. When the places of one of them cover
more than half of all that was written, the text repeats itself.

A table of numbers is not a circle: substrings without a letter count only in a text that is long enough to be sure.
"""

from __future__ import annotations

WINDOW = 40
"""Characters of a substring: longer than what lists, tables and programs repeat by their nature."""
SHARE = 0.5
"""Of the whole text; the paper's."""
MIN_CHARS = 800
"""No shorter text is called repetitive: the paper names no least length, and two equal lines are no circle."""
MIN_CHARS_WITHOUT_LETTERS = 4000
_BASE, _MODULUS = 257, (1 << 61) - 1
_LEADING = pow(_BASE, WINDOW - 1, _MODULUS)


class Repetition:
    """Watches one text, character by character, in constant time for each."""

    def __init__(self) -> None:
        self._text: list[int] = []
        self._hash = 0
        self._last_letter = -1
        self._starts: dict[int, int] = {}
        self._covered: dict[int, int] = {}
        self._most_worded = self._most_bare = 0

    def feed(self, text: str) -> bool:
        """Takes the next piece; whether the text so far is repetitive."""
        for character in text:
            self._see(ord(character), character.isalpha())
        return self.found

    @property
    def found(self) -> bool:
        """Whether one substring covers more than ``SHARE`` of the text so far."""
        n_chars = len(self._text)
        limit = SHARE * n_chars
        return (n_chars >= MIN_CHARS and self._most_worded > limit) or (
            n_chars >= MIN_CHARS_WITHOUT_LETTERS and self._most_bare > limit
        )

    def _see(self, code: int, is_letter: bool) -> None:
        at = len(self._text)
        self._text.append(code)
        if is_letter:
            self._last_letter = at
        if at >= WINDOW:
            self._hash = (self._hash - self._text[at - WINDOW] * _LEADING) % _MODULUS
        self._hash = (self._hash * _BASE + code) % _MODULUS
        if at >= WINDOW - 1:
            self._count(at - WINDOW + 1)

    def _count(self, start: int) -> None:
        """Overlapping places cover no character twice."""
        seen = self._starts.get(self._hash)
        added = WINDOW if seen is None else min(WINDOW, start - seen)
        self._starts[self._hash] = start
        covered = self._covered[self._hash] = self._covered.get(self._hash, 0) + added
        if self._last_letter >= start:
            self._most_worded = max(self._most_worded, covered)
        else:
            self._most_bare = max(self._most_bare, covered)
