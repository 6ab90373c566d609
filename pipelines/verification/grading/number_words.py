"""Number words as digits, and numbers of other languages as English writes them.

"twenty-one birds" is "21 birds", "two and a half metres" "2 1/2 metres", "a dozen" "12". Only the beginning of a text
is read, and nothing before another number word ("twelve thirteen"). "12k" is multiplied out; "1.2 m" are metres.

Other languages (``foreign_numbers.toml``): ``18,50 €``, ``1.250 m``, ``tres``, ``五个人``, ``图中有5个人。``
A comma before one or two decimals is read in any language. Digits grouped by points and number words up to twenty
count only where the question is in a language that has them: "1.250" is 1.25 elsewhere, and "once" no eleven. Chinese
and Japanese numbers go up to 99.
"""

import re
from fractions import Fraction
from functools import lru_cache

from text_to_num import alpha2digit

from darkroom.pipelines.verification.grading.word_lists import Patterns, any_of, read_words, rewrites, rewritten

_DATA = read_words(__file__)
_RE = Patterns(_DATA)
ONES: list[str] = _DATA["ones"]
TENS: list[str] = _DATA["tens"]
_PARTS = [
    (pattern.replace("PART", part), instead.replace("SIZE", size))
    for size, part in _DATA["parts_of_one"].items()
    for pattern, instead in _DATA["parts_as_fractions"]
]
_BEFORE, _AFTER = rewrites([*_DATA["before_reading"], *_PARTS]), rewrites(_DATA["after_reading"])
_MULTIPLIERS: dict[str, int] = _DATA["multipliers"]
_MULTIPLIED = re.compile(
    r"\A([-+]?\s*(?:[$€£¥₹]|[A-Z]{3} )?)(\d[\d,]*(?:\.\d+)?)"
    rf"(?:\s+({any_of([name for name in _MULTIPLIERS if len(name) > 1])})|([kKMB]))(?![\w-])"
)
_MAX_CHARS = 400


def in_words(number: int) -> str:
    """Spell a number of 0 to 9,999: ``forty-seven``, ``two hundred ten``."""
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = f" {in_words(number % size)}" if number % size else ""
            return f"{in_words(number // size)} {name}{rest}"
    if number >= 20:
        return TENS[number // 10 - 2] + (f"-{ONES[number % 10]}" if number % 10 else "")
    return ONES[number]


@lru_cache(maxsize=1024)  # one answer is compared with many
def figures(text: str, language: str = "en") -> str:
    """Write all number words of a text as digits: "3rd of 12 cats". A long text stays as it is."""
    is_read = len(text) <= _MAX_CHARS and _RE.surrogate.search(text) is None
    return alpha2digit(text, language, threshold=0) if is_read else text


def nth(word: str) -> str:
    """An ordinal, "third", "3rd" or "third's", as "3th"; any other text with its numbers as digits."""
    return _RE.nth.sub(r"\1th", figures(word))


@lru_cache(maxsize=1024)  # one answer is compared with many
def in_digits(text: str) -> str:
    """Write the number words at the beginning of ``text`` as digits; without any it stays as it is."""
    sign = _RE.sign.match(text)
    body = text[sign.end() :] if sign else text
    read = body if _RE.digits.match(body) else _read(body)
    read = _MULTIPLIED.sub(
        lambda match: f"{match[1]}{Fraction(match[2].replace(',', '')) * _MULTIPLIERS[match[3] or match[4]]}", read
    )
    if sign and not read[:1].isdigit():
        return text
    return f"-{read}" if sign and sign[1].casefold() in ("minus", "negative") else read


def _read(text: str) -> str:
    """The text with the number that it begins with as digits; as it is if two numbers stand there that are no year."""
    plain = rewritten(text.lstrip(), _BEFORE) if len(text) <= _MAX_CHARS else text
    head, *rest = _RE.second.split(plain, maxsplit=1)  # no ordinal here
    first, hyphen, behind = head.partition("-")
    read = figures(head) if figures(head) != head else f"{figures(first)}{hyphen}{behind}"
    read = rewritten("".join([read, *rest]), _AFTER)
    return text if not read[:1].isdigit() or (read != text and _RE.two_numbers.match(read)) else read


_FOREIGN = read_words(__file__, "foreign_numbers")
_QUESTION = re.compile(_FOREIGN["question"], re.IGNORECASE)
VERBS, SUBJECTS = frozenset(_FOREIGN["verb"]), frozenset(_FOREIGN["subject"])
_LANGUAGES: list[str] = _FOREIGN["languages"]

_CJK = _FOREIGN["cjk"]
_DIGITS: dict[str, int] = {digit: n for n, digit in enumerate(_CJK["digits"])} | {"零": 0, "两": 2, "兩": 2}
_NUMERAL = re.compile(rf"\d+(?:\.\d+)?|[{''.join(_DIGITS)}十]{{1,3}}", re.ASCII)
_COUNTER = re.compile(rf"\A\s*(?:{_CJK['counters']})")
_FILLERS, _DENIALS = frozenset(_CJK["fillers"]), frozenset(_CJK["denials"])
_MAX_NUMBER_CHARS = 60


def is_foreign(question: str) -> bool:
    """Return whether the question is in a language of ``foreign_numbers.toml`` that is written in Latin letters."""
    return _QUESTION.search(question) is not None


def as_english(text: str, question: str) -> str:
    """Write a number that ``text`` begins with, or is, in the English way; any other text stays as it is."""
    if len(text) > _MAX_NUMBER_CHARS:
        return text
    if _RE.letter.search(question) or _RE.letter.match(text):
        return _from_cjk(text, question)
    read = [figures(text, language) for language in _LANGUAGES] if is_foreign(question) else []
    numbers = [number for number in read if _RE.cardinal.match(number) and not text[0].isdigit()]
    if numbers and (_RE.counts.search(question) or text.split()[0].casefold() not in SUBJECTS):
        return min(numbers, key=len)  # the language that reads most of it
    if (grouped := _RE.grouped.match(text)) and (grouped[2] or is_foreign(question)):
        decimals = f".{grouped[2]}" if grouped[2] else ""
        return f"{re.sub('[. ]', '', grouped[1])}{decimals}{text[grouped.end() :]}"
    return _RE.decimal_comma.sub(r"\1.\2", text)


def _from_cjk(text: str, question: str) -> str:
    """The one number, if around it stand a counter, letters of the question and such as say nothing; else the text."""
    plain = text.replace("一共", "").strip()
    numerals = list(_NUMERAL.finditer(plain))
    if len(numerals) != 1 or (number := _cjk_value(numerals[0][0])) is None:
        return text
    behind = _COUNTER.sub("", plain[numerals[0].end() :]).strip(" 。.")
    if not is_neutral_cjk(plain[: numerals[0].start()], question):
        return text
    return number if is_neutral_cjk(behind, question) else f"{number} {behind}"


def is_neutral_cjk(text: str, question: str) -> bool:
    """Return whether letters around a Chinese or Japanese answer are those of the question, or say nothing."""
    is_cjk = _RE.letter.search(question) is not None
    return is_cjk and _DENIALS.isdisjoint(text) and (_FILLERS | set(question) | set(" 。.")).issuperset(text)


def _cjk_value(numeral: str) -> str | None:
    if numeral[0].isascii():
        return numeral
    tens, ten, ones = numeral.rpartition("十")
    if not ten:
        return str(_DIGITS[numeral]) if len(numeral) == 1 else None
    return str(10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)) if len(tens) < 2 and len(ones) < 2 else None
