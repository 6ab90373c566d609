"""Answers compared as text: the same words, yes and no, a text read off an image.

No slip is forgiven among words: of two long texts that differ in one word, that word may be the answer. Text that was
read off an image is compared by ANLS, one less the edit distance as a share of the longer text (Biten et al. 2019, §4).
The benchmark counts 0.5 and above; to *accept* a row that is far too lax ("STOP" and "SHOP" score 0.75). Here a slip is
forgiven in long texts only, and never in a digit or in a word that turns the meaning.
"""

import re
from collections import Counter
from functools import lru_cache

from darkroom.pipelines.records.answers import compatible, edit_similarity, matches
from darkroom.pipelines.verification.grading.answer_text import bare
from darkroom.pipelines.verification.grading.dates import ORDINALS, same_reading, wants_the_letters
from darkroom.pipelines.verification.grading.number_words import in_digits
from darkroom.pipelines.verification.grading.sentences import is_action, stem
from darkroom.pipelines.verification.grading.word_lists import read_words

_DATA = read_words(__file__)
_SHORT: dict[str, str] = _DATA["short"]
_CODE, _TELEPHONE = (re.compile(_DATA[name], re.IGNORECASE) for name in ("code", "telephone"))
_TITLE = re.compile(r"\A(?:mr|mrs|ms|miss)\.? (?=\w+\.? \w)", re.IGNORECASE)
_POINTS = re.compile(r"(?<=[^\W\d])[.,](?=\s|\Z)|(?<=\d),(?=\s)")
_INITIALS = re.compile(r"(?<![^\W_])([^\W\d_])\.?[ .](?=[^\W\d_](?:[. ]|\Z))")
_WARDS = re.compile(r"\A(left|right|up|down|(?:north|south)?-?(?:east|west)|north|south|back|for)wards?\Z")
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_NTH = {word: f"{n}{'th' if 10 < n < 14 else _ENDINGS.get(n % 10, 'th')}" for n, word in enumerate(ORDINALS, 1)}
_NTH_OF = re.compile(r"\A\d+(?:st|nd|rd|th)\Z")
_VERSION = re.compile(r"\bversions?\b", re.IGNORECASE)
_GROUPED = re.compile(r"\A\+?[\d\s().-]{6,}\Z", re.ASCII)

_ARTICLE = re.compile(r"\A(?:[Tt]he|[Aa]n|a)\s+(?=\w)")
"""``A`` is none: "A negative" is a blood group and "A minor" a key."""
_ONE_SPELLING = str.maketrans({"‘": "'", "’": "'", "ʼ": "'", "“": '"', "”": '"', "\u2010": "-"})


def same_words(answer: str, expected: str) -> bool:
    """Return whether ``answer`` is ``expected``, letter by letter, but for the spelling of what stands around it."""
    words, expected_words = _read(answer), _read(expected)
    return bool(words) and (
        matches(words, expected_words) or matches(_without_article(words), _without_article(expected_words))
    )


def same_text(answer: str, expected: str, question: str) -> bool:
    """Return whether an answer is ``expected``: its words, or what they are read as, or usual short forms."""
    text, expected_text = bare(answer), bare(expected)
    if _CODE.search(question) and any(letter.isdigit() for letter in expected_text):
        return _as_code(text, question) == _as_code(expected_text, question)
    if same_words(text, expected_text):
        return True
    if same := same_reading(text, expected_text, question=question):
        return same
    if wants_the_letters(question):
        return False
    if _is_short_form(text, expected_text):
        return True
    deeds = [part.casefold().split() for part in (text, expected_text)]  # "taking out milk" for "takes out milk"
    first, expected_first = ([*map(stem, words[:1])] for words in deeds)
    return is_action(question) and deeds[0][1:] == deeds[1][1:] and first == expected_first


def asks_for_version(question: str) -> bool:
    """Return whether the question asks for a version, which looks like a number and is none."""
    return _VERSION.search(question) is not None


def _as_code(text: str, question: str) -> str:
    """A code to the letter: 007 is not 7, nor 1.10 version 1.1; a telephone number's digits are grouped freely."""
    plain = " ".join(text.translate(_ONE_SPELLING).replace("\u2011", "-").casefold().split())
    if _TELEPHONE.search(question) and _GROUPED.match(plain):
        return re.sub(r"[^\d+]", "", plain)
    return re.sub(r"\A(?:v\.?|version)\s*(?=\d)", "", plain)


def _is_short_form(text: str, expected: str) -> bool:
    """``St.`` for ``Street``, an address without ``https://``, ``Austen, Jane``, ``table-tennis``, ``two``."""
    if any(letter.isdigit() for letter in expected) and "." not in expected:
        return _long_form(text) == _long_form(expected)
    text = text if _TITLE.match(expected) else _TITLE.sub("", text)
    number, _, of = _long_form(expected).partition(" ")
    if _NTH_OF.match(number) and " " not in of and _long_form(text) == number:
        return True
    forms = [{_long_form(part), _in_order(_without_article(part)), _address(part)} for part in (text, expected)]
    hyphen = _long_form(text).replace("-", " ") == _long_form(expected).replace("-", " ")
    return hyphen or not forms[0].isdisjoint(forms[1])


@lru_cache(maxsize=1024)  # one answer is compared with many
def _long_form(text: str) -> str:
    number = in_digits(" ".join(text.split()))
    plain = _without_article(text if "/" in number else number)
    plain = _INITIALS.sub(r"\1", plain.casefold().translate(_ONE_SPELLING))
    words = _POINTS.sub("", plain).split()
    words = [_NTH.get(word, _WARDS.sub(r"\1", word)) for word in words]
    return " ".join(_SHORT.get(word, word) if n else word for n, word in enumerate(words))


def _in_order(text: str) -> str:
    """``Austen, Jane`` as ``jane austen``."""
    last, comma, first = text.casefold().partition(", ")
    return f"{first} {last}" if comma and " " not in last and first.isalpha() else text.casefold()


def _address(text: str) -> str:
    return re.sub(r"\Ahttps?://", "", text.casefold()).removesuffix("/") if "." in text and " " not in text else text


@lru_cache(maxsize=1024)  # one answer is compared with many
def _read(text: str) -> str:
    words = bare(text).translate(_ONE_SPELLING)
    return words.removesuffix("!").rstrip() or words


def _without_article(text: str) -> str:
    return _ARTICLE.sub("", text, count=1)


MIN_SCORE = 0.9
MIN_CHARS = 10
_TURNING = frozenset(_DATA["turning"])
_WORD = re.compile(r"[^\W\d_]+(?:n['’]t)?")
_DIGITS = re.compile(r"\d+")


def similarity(answer: str, expected: str) -> float:
    """ANLS 0..1 of two texts, without regard to case and spacing."""
    return edit_similarity(_plain(answer), _plain(expected))


def reads_the_same(answer: str, expected: str) -> bool:
    """Return whether ``answer`` is ``expected`` but for a slip of the reader."""
    text, expected_text = _plain(answer), _plain(expected)
    if len(expected_text) < MIN_CHARS or _DIGITS.findall(text) != _DIGITS.findall(expected_text):
        return False
    return _turns(text) == _turns(expected_text) and similarity(text, expected_text) >= MIN_SCORE


def _plain(text: str) -> str:
    return " ".join(compatible(text).casefold().split())


def _turns(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text) if word in _TURNING or word.endswith(("n't", "n’t")))
