"""Numbers of other languages as English writes them: ``18,50 €``, ``1.250 m``, ``tres``, ``五个人``, ``图中有5个人。``

A comma before one or two decimals is read in any language. Digits grouped by points and number words up to twenty
count only where the question is in a language that has them: "1.250" is 1.25 elsewhere, and "once" no eleven. Chinese
and Japanese numbers go up to 99. The words of a sentence around a number are in ``sentences.py``.
"""

import re

from darkroom.pipelines.verification.grading.word_lists import read_words

_DATA = read_words(__file__)
_QUESTION = re.compile(_DATA["question"], re.IGNORECASE)
VERBS, SUBJECTS = frozenset(_DATA["verb"]), frozenset(_DATA["subject"])
_VALUES = {word: n for n, words in enumerate(_DATA["ones"]) for word in words.split("|")}
_FIRST_WORD = re.compile(r"\A([^\W\d_]+(?:-[^\W\d_]+)?)(?=\s|\Z)")
_DECIMAL_COMMA = re.compile(r"\A([^\d,.]{0,8}-?\d{1,9}),(\d{1,2})(?![\d,.])")
_GROUPED = re.compile(r"\A([^\d,.]{0,8}-?\d{1,3}(?:\.\d{3})+)(?:,(\d+))?(?![\d,.])")

_CJK = _DATA["cjk"]
_LETTER = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_DIGITS: dict[str, int] = {digit: n for n, digit in enumerate(_CJK["digits"])} | {"零": 0, "两": 2, "兩": 2}
_NUMERAL = re.compile(rf"\d+(?:\.\d+)?|[{''.join(_DIGITS)}十]{{1,3}}", re.ASCII)
_COUNTER = re.compile(rf"\A\s*(?:{_CJK['counters']})")
_FILLERS, _DENIALS = frozenset(_CJK["fillers"]), frozenset(_CJK["denials"])
_MAX_CHARS = 60


def is_foreign(question: str) -> bool:
    """Whether the question is in a language of ``foreign_numbers.toml`` that is written in Latin letters."""
    return _QUESTION.search(question) is not None


def as_english(text: str, question: str) -> str:
    """``text`` with the number that it begins with, or is, as English writes it; any other text as it is."""
    if len(text) > _MAX_CHARS:
        return text
    if _LETTER.search(question) or _LETTER.match(text):
        return _from_cjk(text, question)
    if is_foreign(question):
        if (word := _FIRST_WORD.match(text)) and word[1].casefold() in _VALUES:
            return f"{_VALUES[word[1].casefold()]}{text[word.end() :]}"
        if grouped := _GROUPED.match(text):
            decimals = f".{grouped[2]}" if grouped[2] else ""
            return f"{grouped[1].replace('.', '')}{decimals}{text[grouped.end() :]}"
    return _DECIMAL_COMMA.sub(r"\1.\2", text)


def _from_cjk(text: str, question: str) -> str:
    """The one number, if around it stand a counter, letters of the question and such as say nothing; else the text."""
    plain = text.replace("一共", "").strip()
    found = list(_NUMERAL.finditer(plain))
    if len(found) != 1 or not _DENIALS.isdisjoint(plain) or (number := _value(found[0][0])) is None:
        return text
    behind = _COUNTER.sub("", plain[found[0].end() :]).strip(" 。.")
    said = _FILLERS | set(question) | {" "}
    if not said.issuperset(plain[: found[0].start()]):
        return text
    return number if said.issuperset(behind) else f"{number} {behind}"


def _value(numeral: str) -> str | None:
    if numeral[0].isascii():
        return numeral
    tens, ten, ones = numeral.rpartition("十")
    if not ten:
        return str(_DIGITS[numeral]) if len(numeral) == 1 else None
    if len(tens) > 1 or len(ones) > 1:
        return None
    return str(10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0))
