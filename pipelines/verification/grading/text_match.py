"""Answers compared as text: the same words, yes and no, a text read off an image.

No slip is forgiven among words: of two long texts that differ in one word, that word may be the answer. Text that was
read off an image is compared by ANLS, one less the edit distance as a share of the longer text (Biten et al. 2019, §4).
The benchmark counts 0.5 and above; to *accept* a row that is far too lax ("STOP" and "SHOP" score 0.75). Here a slip is
forgiven in long texts only, and never in a digit or in a word that turns the meaning.
"""

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from darkroom.pipelines.records.answers import compatible, edit_similarity, matches
from darkroom.pipelines.verification.grading.answer_text import bare
from darkroom.pipelines.verification.grading.dates import same_reading, wants_the_letters
from darkroom.pipelines.verification.grading.number_words import figures, in_digits, is_foreign, is_neutral_cjk, nth
from darkroom.pipelines.verification.grading.numeric import same_span
from darkroom.pipelines.verification.grading.sentences import ACTION, stem
from darkroom.pipelines.verification.grading.word_lists import Patterns, read_words, rewrites, rewritten

_DATA = read_words(__file__)
_RE = Patterns(_DATA)
_SHORT, _SPELLING = _DATA["short"], _DATA["spelling"]
_SAME = rewrites(_DATA["same"])
_ROMAN = {ten + one: 10 * n + m for n, ten in enumerate(_DATA["xs"]) for m, one in enumerate(_DATA["is"])}
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "01234567890123456789+-")
_ONE_SPELLING = str.maketrans({"‘": "'", "’": "'", "ʼ": "'", "“": '"', "”": '"', "\u2010": "-"})


def same_words(answer: str, expected: str) -> bool:
    """Return whether ``answer`` is ``expected``, letter by letter, but for the spelling of what stands around it."""
    words, expected_words = _read(answer), _read(expected)
    pairs = ((words, expected_words), (_without_article(words), _without_article(expected_words)))
    return bool(words) and any(matches(*pair) for pair in pairs)


def same_text(answer: str, expected: str, question: str) -> bool:
    """Return whether an answer is ``expected``: its words, or what they are read as, or usual short forms."""
    text, expected_text = bare(answer), bare(expected)
    is_measured = same_span(expected_text, expected_text, question=question)
    is_literal = wants_the_letters(question) and _RE.figures.match(expected_text)
    is_code = is_literal or (_RE.code.search(question) and not is_measured)
    if is_code and any(letter.isdigit() for letter in expected_text):
        codes = [_as_code(part, question) for part in (text, expected_text)]
        return codes[0] == codes[1] or (" " in codes[1] and len({_RE.spaced.sub("", code) for code in codes}) == 1)
    if is_formula(expected_text, question):
        return _formula(text) == _formula(expected_text)
    if (thing := _RE.the_one.match(expected_text)) and same_words(text, thing[1]):
        return True
    if is_foreign(question):
        text, expected_text = (_RE.foreign_article.sub("", part) for part in (text, expected_text))
    if same_words(text, expected_text) or _is_within_cjk(text, expected_text, question):
        return True
    if same := same_reading(text, expected_text, question=question):
        return same
    if wants_the_letters(question):
        return False
    if (gloss := _RE.gloss.match(text)) and not _RE.gloss.match(expected_text):
        return all(same_text(part, expected_text, question) for part in gloss.groups())
    if _is_short_form(text, expected_text):
        return True
    deeds = [
        _RE.doer.sub("", part.casefold()).split() for part in (text, expected_text)
    ]  # "taking out milk" for "takes out milk"
    first, expected_first = ([*map(stem, words[:1])] for words in deeds)
    return bool(ACTION.search(question)) and deeds[0][1:] == deeds[1][1:] and first == expected_first


def same_place(text: str, expected: str, question: str) -> bool:
    """Return whether an answer is the number alone of what the question asks for: "3" or "third" of "row 3"."""
    number, _, of = _long_form(expected).partition(" ")
    is_counted = number.isdigit() and of.isalpha() and f" {of}" in question and not re.match(r"\d+\b", expected)
    name, _, letter = expected.casefold().partition(" ")  # "C" of "Product C"
    is_named = len(letter) == 1 and name in question.casefold().split() and text.casefold() == letter
    return is_named or (is_counted and _long_form(text) in (number, f"{number}th"))


def is_to_the_letter(answer: str, question: str) -> bool:
    """Return whether a number without a unit is a code or a text that is read: version 1.10 is not 1.1."""
    is_asked_for = _RE.code.search(question) is not None or wants_the_letters(question)
    return is_asked_for and _RE.figures.match(answer) is not None and not answer.isdigit()


def is_formula(answer: str, question: str) -> bool:
    """Return whether the answer is a chemical formula, whose capitals count: CO is not Co."""
    return _RE.chemistry.search(question) is not None and _RE.formula.match(_formula(answer)) is not None


def _formula(text: str) -> str:
    """``$\\mathrm{SO_4^{2-}}$``, ``SO₄²⁻`` and ``sulphate (SO₄²⁻)`` as ``SO42-``."""
    return _RE.in_tex.sub("", _RE.named_formula.sub(r"\1\2", text).translate(_LOWERED))


def _is_within_cjk(text: str, expected: str, question: str) -> bool:
    """Return whether a Chinese or Japanese sentence around ``expected`` has no words but those of the question."""
    thing = _RE.one_of.sub("", expected)
    around = text.replace(thing, "", 1)
    return around != text and thing not in question and is_neutral_cjk(around, question)


def _as_code(text: str, question: str) -> str:
    """A code to the letter: 007 is not 7, nor 1.10 version 1.1; a telephone number's digits are grouped freely."""
    plain = " ".join(text.translate(_ONE_SPELLING).replace("\u2011", "-").casefold().split())
    if _RE.telephone.search(question) and _RE.grouped.match(plain):
        return re.sub(r"\A00", "+", re.sub(r"[^\d+]", "", plain))
    return re.sub(r"\A(?:#\s*|(?:v\.?|version)\s*(?=\d))", "", plain)


def _is_short_form(text: str, expected: str) -> bool:
    """``St.`` for ``Street``, an address without ``https://``, ``Austen, Jane``, ``table-tennis``, ``two``."""
    if text.isascii():
        letters = unicodedata.normalize("NFD", expected)
        expected = "".join(letter for letter in letters if not unicodedata.combining(letter))
    for lead in (_RE.title, _RE.placed):  # where one of them has none
        if (lead.match(text) is None) != (lead.match(expected) is None) and text.split()[:1] != [expected]:
            text, expected = lead.sub("", text), lead.sub("", expected)
    if (nth := _RE.nth_of.match(_long_form(expected))) and _long_form(text) == nth[1]:
        return True
    if any(letter.isdigit() for letter in expected) and "." not in expected:
        return _long_form(text) == _long_form(expected)
    if expected in _ROMAN or not _ROMAN.keys().isdisjoint(expected.split()[1:]):
        return _numbered(text) == _numbered(expected)
    return not _forms(text).isdisjoint(_forms(expected))


def _forms(text: str) -> set[str]:
    name = _RE.surname_first.sub(r"\1\3 \2", _without_article(text).casefold())
    return {_long_form(text), name, _RE.address.sub(r"\1", text.casefold())}


def _numbered(text: str) -> list[str]:
    """The words of "Louis XIV" and of "Louis the Fourteenth", in any order."""
    words = [word for word in re.sub(r"[.,]", "", text).split() if word.casefold() != "the"]
    plain = (str(_ROMAN.get(word) or in_digits(figures(word))).casefold() for word in words)
    return sorted(_RE.nth_of.sub(r"\1", word) for word in plain)


@lru_cache(maxsize=1024)  # one answer is compared with many
def _long_form(text: str) -> str:
    number = text if _RE.nth_of.match(figures(text.split(" ")[0])) else in_digits(" ".join(text.split()))
    plain = _without_article(text if "/" in number else number)
    plain = _RE.initials.sub(r"\1", plain.casefold().translate(_ONE_SPELLING))
    words = [_SPELLING.get(word) or in_digits(nth(word)) for word in _RE.points.sub("", plain).split()]
    return rewritten(" ".join(_SHORT.get(word, word) if n else word for n, word in enumerate(words)), _SAME)


@lru_cache(maxsize=1024)  # one answer is compared with many
def _read(text: str) -> str:
    words = _RE.dash.sub("-", bare(text).translate(_ONE_SPELLING))
    return words.removesuffix("!").rstrip() or words


def _without_article(text: str) -> str:
    return _RE.article.sub("", text, count=1)


MIN_SCORE, MIN_CHARS = 0.9, 10
_TURNING = frozenset(_DATA["turning"])


def similarity(answer: str, expected: str) -> float:
    """ANLS 0..1 of two texts, without regard to case and spacing."""
    return edit_similarity(_plain(answer), _plain(expected))


def reads_the_same(answer: str, expected: str) -> bool:
    """Return whether ``answer`` is ``expected`` but for a slip of the reader."""
    text, expected_text = _plain(answer), _plain(expected)
    if len(expected_text) < MIN_CHARS or _RE.digits.findall(text) != _RE.digits.findall(expected_text):
        return False
    return _turns(text) == _turns(expected_text) and similarity(text, expected_text) >= MIN_SCORE


def _plain(text: str) -> str:
    return " ".join(compatible(text).casefold().split())


def _turns(text: str) -> Counter[str]:
    return Counter(word for word in _RE.word.findall(text) if word in _TURNING or word.endswith(("n't", "n’t")))
