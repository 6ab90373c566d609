"""Detect prompt injection aimed at the judge, by rules, before any judge is called.

Caught, in English and, less widely, in Chinese, Japanese, Spanish, German and French, also behind compatible letters:
orders to drop the rules, roles and chat templates, verdicts and scores, claims to be the right answer, tags of the
prompt, orders how to reply, unseen letters, words of mixed scripts, hedges, and the expected words turned round. Not
caught: further languages, riddles, ciphers, and a wrong answer that addresses no reader. Those the judge reads, between
fences, as data.
"""

import re
import unicodedata

from darkroom.pipelines.records.answers import compatible
from darkroom.pipelines.verification.grading.answer_text import hedging_words, hidden, turning_words
from darkroom.pipelines.verification.grading.word_lists import read_words

MAX_CHARS = 1000
"""A judge is shown no longer answer, and none that is cut: what was cut off may take the rest back."""

_ADDRESSED: dict[str, re.Pattern[str]] = {
    why: re.compile("|".join(patterns), re.MULTILINE) for why, patterns in read_words(__file__)["addresses"].items()
}
_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|[^\W\d_]+")
"""Scripts without spaces: each sign is a word."""
_MIN_WORDS = 2
_MIN_CHARS = 3
"""Of a word that two answers may share."""


def rejection_reason(answer: str, expected: str) -> str:
    """Why a judge is not asked about ``answer``; empty where it is."""
    if len(answer) > MAX_CHARS:
        return f"an answer of {len(answer)} characters"
    if len(_WORD.findall(answer)) < min(_MIN_WORDS, len(_WORD.findall(expected))):
        return "no words, or one where a sentence is expected"
    if hidden(answer) - hidden(expected):
        return "unseen characters"
    if any(_is_mixed(word) for word in _WORD.findall(answer)):
        return "a word of several scripts"
    plain = _joined(compatible(answer).casefold().replace("’", "'"))
    for why, pattern in _ADDRESSED.items():
        if pattern.search(plain):
            return why
    if hedging_words(answer) - hedging_words(expected):
        return "hedges"
    return "turns the expected answer round" if _is_turned(answer, expected) else ""


def _joined(text: str) -> str:
    """With words that are spelled out ("i g n o r e", "i-g-n-o-r-e") put together."""
    return re.sub(r"\b(?:\w[ .\-_*]){3,}\w\b", lambda match: re.sub(r"[ .\-_*]", "", match[0]), text)


def _is_mixed(word: str) -> bool:
    """Whether a word has letters that look like others: Latin beside Cyrillic or Greek."""
    if word.isascii():
        return False
    scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in compatible(word)}
    return len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"}) > 1


def _is_turned(answer: str, expected: str) -> bool:
    """Whether the expected words are all there, and other words that deny."""
    return _words(expected) <= _words(answer) and turning_words(answer) != turning_words(expected)


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if len(word) >= _MIN_CHARS}
