"""ANLS for text that was read: one less the edit distance as a share of the longer text (Biten et al. 2019, §4).

The benchmark counts 0.5 and above; to *accept* a row that is far too lax ("STOP" and "SHOP" score 0.75). Here a slip
is forgiven in long texts only, and never in a digit or in a word that turns the meaning.
"""

from __future__ import annotations

import re
from collections import Counter

from pipelines.answers import compatible

MIN_SCORE = 0.9
MIN_CHARS = 10
_TURNING = frozenset(
    ["not", "no", "never", "none", "nor", "neither", "without", "except", "or", "and", "either", "un", "non", "cannot"]
)
_WORD = re.compile(r"[^\W\d_]+(?:n['’]t)?")
_DIGITS = re.compile(r"\d+")


def similarity(given: str, expected: str) -> float:
    """ANLS 0..1 of two texts, without regard to case and spacing."""
    left, right = _plain(given), _plain(expected)
    longer = max(len(left), len(right))
    return 1 - _distance(left, right) / longer if longer else 0.0


def reads_the_same(given: str, expected: str) -> bool:
    """Whether ``given`` is ``expected`` but for a slip of the reader."""
    left, right = _plain(given), _plain(expected)
    if len(right) < MIN_CHARS or _DIGITS.findall(left) != _DIGITS.findall(right):
        return False
    return _turns(left) == _turns(right) and similarity(left, right) >= MIN_SCORE


def _plain(text: str) -> str:
    return " ".join(compatible(text).casefold().split())


def _turns(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text) if word in _TURNING or word.endswith(("n't", "n’t")))


def _distance(left: str, right: str) -> int:
    """Levenshtein's, one row at a time."""
    row = list(range(len(right) + 1))
    for n, one in enumerate(left, 1):
        before, row[0] = row[0], n
        for m, other in enumerate(right, 1):
            before, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, before + (one != other))
    return row[-1]
