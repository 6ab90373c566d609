"""Whether two short texts are the same words: case, quotes, an article before them and the mark after them aside.

No slip is forgiven here (``anls.py`` does, for rows that are read off an image and checked otherwise): of two long
texts that differ in one word, that word may be the answer.
"""

from __future__ import annotations

import re

from pipelines.answers import matches
from pipelines.grading.spelling import bare

_ARTICLE = re.compile(r"\A(?:[Tt]he|[Aa]n|a)\s+(?=\w)")
"""``A`` is none: "A negative" is a blood group and "A minor" a key."""
_ONE_SPELLING = str.maketrans({"‘": "'", "’": "'", "ʼ": "'", "“": '"', "”": '"', "\u2010": "-"})


def same_words(given: str, expected: str) -> bool:
    """Whether ``given`` is ``expected``, letter by letter, but for the spelling of what stands around it."""
    left, right = _read(given), _read(expected)
    return bool(left) and (matches(left, right) or matches(_without_article(left), _without_article(right)))


def _read(text: str) -> str:
    words = bare(text).translate(_ONE_SPELLING)
    without_mark = words.removesuffix("!").rstrip()
    return without_mark or words


def _without_article(text: str) -> str:
    return _ARTICLE.sub("", text, count=1)
