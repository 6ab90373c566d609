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
from itertools import product

from text_to_num import text2num

from darkroom.pipelines.verification.grading.word_lists import Patterns, any_of, read_words

_DATA = read_words(__file__)
_RE = Patterns(_DATA)
ONES: list[str] = _DATA["ones"]
TENS: list[str] = _DATA["tens"]
_PARTS: dict[str, int] = _DATA["parts_of_one"]
_MULTIPLIERS: dict[str, int] = _DATA["multipliers"]
_MAX_WORDS = 16

_POINT = re.compile(rf"\A\s+point((?:\s+{any_of(ONES[:10])})+)(?![\w-])", re.IGNORECASE)
_AND_A_PART = re.compile(rf"\A\s+and\s+(a|{any_of(ONES[1:10])})[\s-]({any_of(list(_PARTS))})(?![\w-])", re.IGNORECASE)
_A_PART = re.compile(rf"\A(?:(?:an?|one)[\s-]+)?({any_of(list(_PARTS))})(?![\w-])", re.IGNORECASE)
_OF_PARTS = re.compile(rf"\A[\s-]({any_of(list(_PARTS))})(?![\w-])", re.IGNORECASE)
_MULTIPLIED = re.compile(
    r"\A([-+]?\s*\$?)(\d[\d,]*(?:\.\d+)?)"
    rf"(?:\s+({any_of([name for name in _MULTIPLIERS if len(name) > 1])})|([kKMB]))(?![\w-])"
)


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
def in_digits(text: str) -> str:
    """Write the number words at the beginning of ``text`` as digits; without any it stays as it is."""
    if (measure := _RE.measures.match(text)) and (second := _words(text[measure.end() :])):
        return f"{in_digits(_RE.an.sub('1 ', measure[1]))} {second}"
    sign = _RE.sign.match(text)
    body = text[sign.end() :] if sign else text
    read = _words(body) or body
    multiplied = _MULTIPLIED.sub(
        lambda match: f"{match[1]}{Fraction(match[2].replace(',', '')) * _MULTIPLIERS[match[3] or match[4]]}", read
    )
    minus = sign is not None and sign[1].casefold() in ("minus", "negative")
    if minus and multiplied[:1].isdigit():
        return f"-{multiplied}"
    return multiplied if sign is None or multiplied[:1].isdigit() else text


def _words(text: str) -> str:
    """Read number words at the beginning of ``text``; empty where there are none."""
    if article := _RE.one_and_a_half.match(text):
        return f"1 1/2 {article[1]}"
    if dozen := _RE.dozen.match(text):
        return f"{6 if dozen[1] else 12}{text[dozen.end() :]}"
    if part := _A_PART.match(text):
        rest = re.sub(r"\A\s+(?:an?|of an?)\s+", " ", text[part.end() :])  # half an hour
        return f"1/{_PARTS[part[1].casefold()]}{rest}"
    if figure := _RE.figure.match(text):
        return _with_part(figure[1], text[figure.end() :])
    number, rest = _cardinal(text)
    if number is None:
        return ""
    if decimals := _POINT.match(rest):
        digits = "".join(str(ONES.index(word.casefold())) for word in decimals[1].split())
        return f"{number}.{digits}{rest[decimals.end() :]}"
    if parts := _OF_PARTS.match(rest):
        return f"{number}/{_PARTS[parts[1].casefold()]}{rest[parts.end() :]}"
    if dozen := re.match(r"\A dozen(?![\w-])", rest):
        return f"{12 * number}{rest[dozen.end() :]}"
    return _with_part(str(number), rest)


def _with_part(number: str, rest: str) -> str:
    part = _AND_A_PART.match(rest)
    if part is None:
        return number + rest
    numerator = ONES.index(part[1].casefold()) if part[1].casefold() in ONES else 1
    return f"{number} {numerator}/{_PARTS[part[2].casefold()]}{rest[part.end() :]}"


def _cardinal(text: str) -> tuple[int | None, str]:
    """The cardinal at the beginning, and what follows it. None where there is none, or another number word follows."""
    words: list[str] = []
    end = stop = n_known = 0
    while len(words) < _MAX_WORDS and (match := _RE.next.match(text, end)):
        word = match[1].casefold()
        is_number = len(word) > 1 and _value((word,)) is not None
        if not is_number and not (word == "and" and words) and not (word == "a" and not words):
            break
        words.append("one" if word == "a" else word)
        end = match.end()
        if is_number:
            n_known, stop = len(words), end
    read = tuple(words[:n_known])
    number = _value(read)
    return _year(read) if number is None else number, text[stop:]


@lru_cache(maxsize=1024)
def _value(words: tuple[str, ...], language: str = "en") -> int | None:
    """The number that all of the words are."""
    try:
        return int(text2num(" ".join(words), language))
    except ValueError:
        return None


def _year(words: tuple[str, ...]) -> int | None:
    """Two numbers below a hundred that are a year: "eighteen ninety-five"."""
    century, year = _value(words[:1]), _value(words[1:])
    is_one = century is not None and year is not None and 12 < century <= 20 and 10 <= year < 100
    return 100 * century + year if is_one and century is not None and year is not None else None


_FOREIGN = read_words(__file__, "foreign_numbers")
_QUESTION = re.compile(_FOREIGN["question"], re.IGNORECASE)
VERBS, SUBJECTS = frozenset(_FOREIGN["verb"]), frozenset(_FOREIGN["subject"])
_LANGUAGES: list[str] = _FOREIGN["languages"]

_CJK = _FOREIGN["cjk"]
_DIGITS: dict[str, int] = {digit: n for n, digit in enumerate(_CJK["digits"])} | {"零": 0, "两": 2, "兩": 2}
_NUMERAL = re.compile(rf"\d+(?:\.\d+)?|[{''.join(_DIGITS)}十]{{1,3}}", re.ASCII)
_COUNTER = re.compile(rf"\A\s*(?:{_CJK['counters']})")
_FILLERS, _DENIALS = frozenset(_CJK["fillers"]), frozenset(_CJK["denials"])
_MAX_CHARS, _MAX_FOREIGN = 60, 4


def is_foreign(question: str) -> bool:
    """Return whether the question is in a language of ``foreign_numbers.toml`` that is written in Latin letters."""
    return _QUESTION.search(question) is not None


def as_english(text: str, question: str) -> str:
    """Write a number that ``text`` begins with, or is, in the English way; any other text stays as it is."""
    if len(text) > _MAX_CHARS:
        return text
    if _RE.letter.search(question) or _RE.letter.match(text):
        return _from_cjk(text, question)
    words = text.split(" ") if is_foreign(question) else []
    for n, language in product(range(min(len(words), _MAX_FOREIGN), 0, -1), _LANGUAGES):
        if (number := _value(tuple(map(str.casefold, words[:n])), language)) is not None:
            return " ".join([str(number), *words[n:]])
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
