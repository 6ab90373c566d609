"""Detects repetition in a text while it is generated (Thyme §4.3, Sampling Optimization).

Every substring of a fixed length is counted by a Rabin-Karp rolling hash, here as differences of prefix sums: the
thread that generates waits for it, and whole blocks are ten times as fast as one character after the other. When the
places of one of them cover more than half of all that was written, the text repeats itself. A substring of one length
covers less than half of a circle of twice its length, so several lengths are looked at.

A table of numbers is no repetition: substrings without a letter count only in a text that is long enough to be sure.
Nor is code that was repaired twice: repetition occurs five times.
"""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

MIN_CHARS = 800
"""No shorter text is called repetitive; nor does the paper name a least length."""
BLOCK = 64
"""Characters that are waited for before they are looked at."""
_BASE = 0x9E3779B97F4A7C15
"""Odd, so that it can be divided by modulo 2**64. The texts that collide by this modulus for any base (Thue's and
Morse's) are longer than every window."""

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RepetitionRule:
    """When a text is repetitive: characters of ``windows`` whose places, at least ``times``, cover over ``share``."""

    windows: tuple[int, ...] = (40, 80, 160, 320, 640)
    """The shortest is longer than what lists, tables and programs repeat by their nature."""
    share: float = 0.5
    """Of the whole text; the paper's."""
    times: int = 5
    """Places that do not overlap; the paper names no number."""
    min_chars: int = MIN_CHARS
    min_chars_without_letters: int = 4000


DARKROOM = RepetitionRule()
PAPER = RepetitionRule(times=2, min_chars=0, min_chars_without_letters=0)
"""Thyme §4.3 as it stands: any substring that repeats and covers more than half. It has one fixed length, which is not
published; here each of the windows counts. Places that overlap cover no character twice."""
RULES = {"darkroom": DARKROOM, "paper": PAPER}


class Repetition:
    """Watches one text while it grows, in constant time for each character."""

    def __init__(self, rule: RepetitionRule = DARKROOM) -> None:
        self._rule = rule
        self._pending: list[str] = []
        self._n_chars = self._n_pending = 0
        self._sums: Hashes = np.zeros(1, np.uint64)
        self._last_letters: NDArray[np.int64] = np.zeros(0, np.int64)
        self._windows = [_Window(length, rule.times) for length in rule.windows]

    def feed(self, text: str) -> bool:
        """Takes the next piece; whether the text is repetitive, but for fewer than ``BLOCK`` characters at its end."""
        self._pending.append(text)
        self._n_pending += len(text)
        if self._n_pending >= BLOCK:
            self._look()
        return self._is_repetitive()

    @property
    def found(self) -> bool:
        """Return whether one substring covers more than the rule's share of the text so far."""
        self._look()
        return self._is_repetitive()

    def _is_repetitive(self) -> bool:
        n_chars, rule = self._n_chars, self._rule
        return any(
            (n_chars >= rule.min_chars and window.most_worded > rule.share * n_chars)
            or (n_chars >= rule.min_chars_without_letters and window.most_bare > rule.share * n_chars)
            for window in self._windows
        )

    def _look(self) -> None:
        text = "".join(self._pending)
        self._pending, self._n_pending = [], 0
        if not text:
            return
        before, self._n_chars = self._n_chars, self._n_chars + len(text)
        self._make_room()
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        powers, inverses = _powers(max(10, (len(self._last_letters) - 1).bit_length()))
        new = slice(before, self._n_chars)
        self._sums[before + 1 : self._n_chars + 1] = self._sums[before] + np.cumsum(codes * powers[new])
        letters = np.where(np.fromiter(map(str.isalpha, text), bool, len(text)), np.arange(before, self._n_chars), -1)
        if before:
            letters[0] = max(letters[0], self._last_letters[before - 1])
        self._last_letters[new] = np.maximum.accumulate(letters)
        for window in self._windows:
            start, end = max(0, before - window.length + 1), self._n_chars - window.length + 1
            if start < end:
                window.count(
                    start,
                    (self._sums[start + window.length : end + window.length] - self._sums[start:end])
                    * inverses[start:end],
                    self._last_letters[start + window.length - 1 : end + window.length - 1],
                )

    def _make_room(self) -> None:
        """``_sums[n]`` is the hash of the first n characters; ``_last_letters[n]`` where the last letter up to n is."""
        if (short := self._n_chars - len(self._last_letters)) > 0:
            more = max(short, len(self._last_letters), 1024)
            self._sums = np.concatenate([self._sums, np.zeros(more, np.uint64)])
            self._last_letters = np.concatenate([self._last_letters, np.zeros(more, np.int64)])


@dataclass(slots=True)
class _Places:
    """Occurrences of one substring: the last start, their number without overlap, the characters that they cover."""

    last: int
    apart: int
    n_apart: int
    covered: int


@dataclass(slots=True)
class _Window:
    """All substrings of one length. ``most_…``: the most characters that one covers, with letters and without."""

    length: int
    times: int
    most_worded: int = 0
    most_bare: int = 0
    _places: dict[int, int | _Places] = field(default_factory=dict)
    """By hash; of a substring that is there once only where it begins."""

    def count(self, start: int, hashes: Hashes, last_letters: NDArray[np.int64]) -> None:
        """The substrings that begin at ``start`` and after it, and where the last letter up to the end of each is."""
        for at, (hashed, last_letter) in enumerate(zip(hashes.tolist(), last_letters.tolist(), strict=True), start):
            self._count(hashed, at, has_letter=last_letter >= at)

    def _count(self, hashed: int, start: int, *, has_letter: bool) -> None:
        """Overlapping places cover no character twice."""
        if (places := self._places.setdefault(hashed, start)) == start:
            return
        if isinstance(places, int):
            places = self._places[hashed] = _Places(places, places, 1, self.length)
        places.covered += min(self.length, start - places.last)
        places.last = start
        if start - places.apart >= self.length:
            places.apart, places.n_apart = start, places.n_apart + 1
        if places.n_apart >= self.times and has_letter:
            self.most_worded = max(self.most_worded, places.covered)
        elif places.n_apart >= self.times:
            self.most_bare = max(self.most_bare, places.covered)


@lru_cache
def _powers(log: int) -> tuple[Hashes, Hashes]:
    """The first ``2**log`` powers of ``_BASE`` and of its inverse."""
    factors = [np.array([1, *[base] * ((1 << log) - 1)], np.uint64) for base in (_BASE, pow(_BASE, -1, 1 << 64))]
    return np.cumprod(factors[0], dtype=np.uint64), np.cumprod(factors[1], dtype=np.uint64)
