"""Answers compared as text: the same words, a text read off an image, the letter or text of one choice.

No slip is forgiven among words: of two long texts that differ in one word, that word may be the answer. Text that was
read off an image is compared by ANLS, one less the edit distance as a share of the longer text (Biten et al. 2019, §4).
The benchmark counts 0.5 and above; to *accept* a row that is far too lax ("STOP" and "SHOP" score 0.75). Here a slip is
forgiven in long texts only, and never in a digit or in a word that turns the meaning.
"""

import re
from collections import Counter
from collections.abc import Sequence

from pipelines.records.answers import compatible, edit_distance, letter_of, matches
from pipelines.verification.grading.answer_text import bare

_ARTICLE = re.compile(r"\A(?:[Tt]he|[Aa]n|a)\s+(?=\w)")
"""``A`` is none: "A negative" is a blood group and "A minor" a key."""
_ONE_SPELLING = str.maketrans({"‘": "'", "’": "'", "ʼ": "'", "“": '"', "”": '"', "\u2010": "-"})


def same_words(answer: str, expected: str) -> bool:
    """Whether ``answer`` is ``expected``, letter by letter, but for the spelling of what stands around it."""
    words, expected_words = _read(answer), _read(expected)
    return bool(words) and (
        matches(words, expected_words) or matches(_without_article(words), _without_article(expected_words))
    )


def _read(text: str) -> str:
    words = bare(text).translate(_ONE_SPELLING)
    without_mark = words.removesuffix("!").rstrip()
    return without_mark or words


def _without_article(text: str) -> str:
    return _ARTICLE.sub("", text, count=1)


MIN_SCORE = 0.9
MIN_CHARS = 10
_TURNING = frozenset(
    ["not", "no", "never", "none", "nor", "neither", "without", "except", "or", "and", "either", "un", "non", "cannot"]
)
_WORD = re.compile(r"[^\W\d_]+(?:n['’]t)?")
_DIGITS = re.compile(r"\d+")


def similarity(answer: str, expected: str) -> float:
    """ANLS 0..1 of two texts, without regard to case and spacing."""
    text, expected_text = _plain(answer), _plain(expected)
    longer = max(len(text), len(expected_text))
    return 1 - edit_distance(text, expected_text) / longer if longer else 0.0


def reads_the_same(answer: str, expected: str) -> bool:
    """Whether ``answer`` is ``expected`` but for a slip of the reader."""
    text, expected_text = _plain(answer), _plain(expected)
    if len(expected_text) < MIN_CHARS or _DIGITS.findall(text) != _DIGITS.findall(expected_text):
        return False
    return _turns(text) == _turns(expected_text) and similarity(text, expected_text) >= MIN_SCORE


def _plain(text: str) -> str:
    return " ".join(compatible(text).casefold().split())


def _turns(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text) if word in _TURNING or word.endswith(("n't", "n’t")))


_NAMED = re.compile(r"\A(?:option|choice|answer)\s+(?=\(?[A-Z]\b)", re.IGNORECASE)
_BOXED_LETTER = re.compile(r"\A\(?\\(?:text|mathrm|textbf|mathbf)\s*\{\s*\(?([A-Z])\)?\.?\s*\}\)?\Z")


def chosen_letter(answer: str, choices: Sequence[str]) -> str | None:
    """The letter of the one choice that ``answer`` names; None if it names none or more than one."""
    text = bare(answer)
    if boxed := _BOXED_LETTER.match(text):
        text = boxed[1]
    # the words as they are come first: a choice may itself begin with "option"
    return letter_of(text, choices) or letter_of(_NAMED.sub("", text), choices)
