"""The words of a text, so that spelling makes no difference.

Compatible spellings, case, invisible characters and punctuation make none. What carries meaning stays: numbers with
their points, signs of arithmetic, brackets. Scripts that are written without spaces are split into their characters.
Look-alikes of other alphabets are not folded.
"""

import re
import unicodedata
from collections.abc import Sequence

Words = tuple[str, ...]

_WORD = re.compile(
    r"\d+(?:[.,]\d+)*"  # 3.5 and 1,000 are one word
    r"|(?<=[\d)])!"  # a factorial
    r"|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    r"|[^\W\d_]+(?:['’][^\W\d_]+)*"
    r"|_+"  # a blank to fill in
    r"|[^\w\s.,;:!?\"'`“”„‘’«»…·•]"
)
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-"))


def words(text: str) -> Words:
    """The words, numbers and signs of a text.

    >>> words("What's “3.5” × 2?")
    ("what's", '3.5', '×', '2')
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    visible = "".join(mark for mark in folded if unicodedata.category(mark) != "Cf")
    return tuple(word.replace("’", "'") for word in _WORD.findall(visible.translate(_DASHES)))


def normalised(text: str) -> str:
    """One spelling for all texts of the same words; empty when there are none."""
    return " ".join(words(text))


def numbers(of: Sequence[str]) -> Words:
    """The words that are numbers, in order."""
    return tuple(word for word in of if word[0].isdigit())


def n_grams(of: Words, n: int) -> list[Words]:
    """Every run of ``n`` words, in order; of a shorter text its words as one run; of none, none."""
    if len(of) <= n:
        return [of] if of else []
    return [of[start : start + n] for start in range(len(of) - n + 1)]
