r"""An answer's text before any rule reads it: its wrapping removed, its hedges counted, its invisible characters found.

Wrapping stands around an answer and does not belong to it: "The answer is", ``\boxed{}``, ``$``, ``**``, quotes. Hedges
leave an answer open, turning words deny it; both are compared with those of the expected answer. An answer with
invisible characters (zero-width letters, marks of direction, tags, lone surrogates, private letters) that the expected
one lacks is rejected, never cleaned. *Compatible* spellings (fullwidth digits, mathematical letters) are the same by
decision; letters of another script that only look alike are other letters.
"""

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import accumulate

from darkroom.pipelines.records.answers import compatible
from darkroom.pipelines.verification.grading.word_lists import any_of, read_words

MAX_CHARS = 400
"""Longer answers are compared letter by letter only: no final answer is that long."""

_DATA = read_words(__file__)
_LEAD = re.compile(_DATA["lead"], re.IGNORECASE)
_WRAPPED = [re.compile(pattern, re.DOTALL) for pattern in _DATA["wrapped"]]
_EMPHASIS = re.compile(_DATA["emphasis"])
_HEDGES = re.compile(rf"\b{any_of(_DATA['hedges'])}\b|\?")
_TURNS = re.compile(rf"\b{any_of(_DATA['turns'])}\b|n't\b")
_MAX_LAYERS = 6
_MINUS = str.maketrans({"\u2212": "-", "\u2013": "-", "\uff0d": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})


@lru_cache(maxsize=1024)  # one answer is compared with many
def bare(answer: str) -> str:
    """The answer alone: wrapping, lead-in and closing full stop removed, compatible letters unified."""
    text = compatible(answer).translate(_MINUS).strip()
    for _ in range(_MAX_LAYERS):
        inner = _without_one_layer(text)
        if inner == text:
            break
        text = inner
    return text


def _without_one_layer(text: str) -> str:
    text = _LEAD.sub("", _EMPHASIS.sub(r"\1", text), count=1).strip()
    if text.endswith((".", "。")) and not text.endswith(".."):
        text = text[:-1].rstrip()
    for wrapped in _WRAPPED:
        if match := wrapped.match(text):
            inner = match[match.lastindex or 0]
            depths = [0, *levels(inner, "{}")]
            if min(depths) == depths[-1] == 0:
                return inner.strip()
    return text


def levels(text: str, brackets: str = "()[]{}") -> list[int]:
    """Count the open brackets (pairs: opening, closing) after each letter."""
    steps = {bracket: -1 if n % 2 else 1 for n, bracket in enumerate(brackets)}
    return list(accumulate(steps.get(letter, 0) for letter in text))


def hedging_words(text: str) -> Counter[str]:
    """The words that leave it open which of several things is meant."""
    return Counter(_HEDGES.findall(_folded(text)))


def turning_words(text: str) -> Counter[str]:
    """The words that deny, or say that something is wrong."""
    return Counter(_TURNS.findall(_folded(text)))


def open_words(text: str) -> Counter[str]:
    """The words that hedge or deny."""
    return hedging_words(text) | turning_words(text)


_QUOTED = re.compile(r"""'[^'\n]{1,60}'|"[^"\n]{1,60}\"""")


def without_quotes_of(question: str, answer: str) -> str:
    """The answer without what it quotes of the question: "37 chose 'never'" denies nothing."""
    for quoted in dict.fromkeys(_QUOTED.findall(question)):
        answer = answer.replace(quoted, "")
    return answer


def _folded(text: str) -> str:
    return " ".join(compatible(text).casefold().replace("’", "'").split())


_UNSEEN = frozenset({"Cf", "Cs", "Co", "Cc"})
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0" + "".join(map(chr, range(0xFE00, 0xFE10))))
_SPACES = frozenset("\t\n\r")


def hidden(text: str) -> frozenset[str]:
    """The characters of ``text`` that are not seen, spaces and line ends aside."""
    letters = set(text) - _SPACES
    return frozenset(letter for letter in letters if letter in _BLANK or unicodedata.category(letter) in _UNSEEN)
