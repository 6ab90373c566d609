"""Equations, points and intervals in the forms that are one: ``2x+1 = y``, ``x > 3`` and ``(3, ∞)``, ``x = 1, y = -4``.

What math-verify compares stays with it (``maths.py``); here are the forms that it holds for different things, and the
words in which expressions are written.
"""

import re
from collections.abc import Iterator

from darkroom.pipelines.verification.grading.math_worker import maths_process
from darkroom.pipelines.verification.grading.maths import read_expression
from darkroom.pipelines.verification.grading.number_words import in_digits
from darkroom.pipelines.verification.grading.quantity import read_quantity, same_quantity
from darkroom.pipelines.verification.grading.word_lists import read_words

MAX_CHARS = 200
_DATA = read_words(__file__)
_WORDS = [(re.compile(pattern, re.IGNORECASE), symbol) for symbol, pattern in _DATA["symbols"].items()]
_SET = re.compile(r"\A\{([^{}]*)\}\Z")
_UNITS = re.compile(r"\s(?:square |cubic )?units?\Z", re.IGNORECASE)
_NAMED_POINT = re.compile(r"\A[A-Z](?=\s?\()")
_FUNCTION = re.compile(r"\Af\([a-z]\) ?=")
_POINT = re.compile(r"\A([a-z]) ?= ?([^=,]{1,60}),? (?:and )?([a-z]) ?= ?([^=,]{1,60})\Z")
_BETWEEN = re.compile(r"\A([^<>≤≥=]{1,60})([<≤])\s?([a-z])\s?([<≤])([^<>≤≥=]{1,60})\Z")
_BOUND = re.compile(r"\A([a-z])\s?([<>≤≥])([^<>≤≥=]{1,60})\Z")
_BOUND_BEHIND = re.compile(r"\A([^<>≤≥=]{1,60})([<>≤≥])\s?([a-z])\Z")
_INTERVAL = re.compile(r"\A(?:[a-z]\s?∈\s?)?([\[(])([^\[\](),;]{1,60})[,;]([^\[\](),;]{1,60})([\])])\Z")
_BUILT = re.compile(r"\A\\?\{ ?[a-z] ?(?:(?:\\in|∈)[^|:\\]{1,20})?(?:\\mid|\||:) ?([^{}]{1,120})\\?\}\Z")
"""``{x | -2 <= x < 4}``"""
_DEGREES = re.compile(r"\^?\{?(?:°|\^\{?\\circ\}?)\}?")
_ANGLE_NAMED = re.compile(r"angle(?:\d|[a-z]{1,3}(?![a-z]))")
_TURNED = {"<": ">", ">": "<", "≤": "≥", "≥": "≤"}
_ASKED = re.compile(r"\b(?:value of|solve for|find)\s+\$?([a-zA-Z])\$?(?![a-zA-Z])")

Interval = tuple[str, bool, str, bool]
"""Lower end, whether it belongs to the interval, upper end, whether it does."""


def in_symbols(text: str) -> str:
    """An expression with its words as symbols: "negative infinity", "x is greater than 3", "one half"."""
    if len(text) > MAX_CHARS:
        return text
    number = in_digits(text)
    if number != text and read_quantity(number) is not None:
        return number
    plain = " ".join(text.split())
    for pattern, symbol in _WORDS:
        plain = pattern.sub(symbol, plain)
    plain = _SET.sub(r"\\{\1\\}", _UNITS.sub("", plain))
    return _NAMED_POINT.sub("", _FUNCTION.sub("y =", plain))


def same_form_of(answer: str, expected: str) -> bool | None:
    """Whether two texts are one interval, one point, one equation or one pair of roots; None where expected is none."""
    if max(len(answer), len(expected)) > MAX_CHARS:
        return None
    if point := _as_point(answer):
        return _same(point, expected)
    wanted = _interval(expected)
    if wanted is not None:
        found = _interval(answer)
        # two numbers in round brackets may be a point as well: that is compared elsewhere
        return None if found is None else _same_letter(answer, expected) and _same_interval(found, wanted)
    for turned in _turned_equations(answer, expected):
        return _same(turned, expected)
    if r"\pm" in expected or "±" in expected:
        return _same_roots(answer, expected)
    return None


def result(text: str, question: str) -> str | None:
    """The last side of "7^2 = 49" or "Area = 16π", if what stands before it is the question's or has that value."""
    *before, last = (side.strip(" $") for side in _DEGREES.sub("", text).split("="))
    if not before or len(text) > MAX_CHARS or not last or len(before) > 2:
        return None
    return last if all(_is_before(side, last, question) for side in before) else None


def other_variable(name: str, question: str) -> bool:
    """Whether the question asks for the value of another variable than ``name``."""
    asked = {match[1] for match in _ASKED.finditer(question)}
    return bool(asked) and name not in asked


def _is_before(side: str, last: str, question: str) -> bool:
    tight, asked = _tight(side), _tight(question)
    if not tight or (len(tight) > 2 and tight in asked):
        wanted = _ANGLE_NAMED.findall(_tight(re.split(r"[.!]\s", question.strip())[-1]))
        return not (_ANGLE_NAMED.fullmatch(tight) and wanted) or tight in wanted
    if re.fullmatch(r"[A-Za-z]", side.strip()):
        return not other_variable(side.strip(), question)
    first, value = read_expression(side), read_expression(last)
    if first is None or value is None or first.letters or value.letters or read_quantity(side) is not None:
        return False
    return maths_process.compare(first.tex, value.tex).same


def _tight(text: str) -> str:
    """Without spaces; an angle is called that: "m∠2" is "angle 2"."""
    named = re.sub(r"\bm ?(?=∠|\\angle)", "", text).replace("∠", "angle").replace("\\angle", "angle")
    return re.sub(r"\s", "", named).casefold()


def _interval(text: str) -> Interval | None:
    text = _BUILT.sub(r"\1", " ".join(text.strip(" $").split()))
    plain = text.replace(r"\left", "").replace(r"\right", "").replace(r"\le ", "≤").replace(r"\leq", "≤")
    plain = plain.replace(r"\geq", "≥").replace(r"\ge ", "≥").replace(r"\infty", "∞").replace(r"\in ", "∈")
    plain = plain.replace("<=", "≤").replace(">=", "≥").strip(" $")
    if match := _BETWEEN.match(plain):
        return _end(match[1]), match[2] == "≤", _end(match[5]), match[4] == "≤"
    if match := _BOUND.match(plain):
        return _half(match[2], match[3])
    if match := _BOUND_BEHIND.match(plain):
        return _half(_TURNED[match[2]], match[1])
    if match := _INTERVAL.match(plain):
        return _end(match[2]), match[1] == "[", _end(match[3]), match[4] == "]"
    return None


def _same_letter(answer: str, expected: str) -> bool:
    """Whether two inequalities are about one variable; an interval in brackets names none."""
    letters = [set(re.findall(r"(?<![a-zA-Z\\])[a-z](?![a-zA-Z])", text)) for text in (answer, expected)]
    return not letters[0] or not letters[1] or letters[0] == letters[1]


def _half(sign: str, end: str) -> Interval:
    closed = sign in "≤≥"
    return ("-∞", False, _end(end), closed) if sign in "<≤" else (_end(end), closed, "∞", False)


def _end(text: str) -> str:
    return re.sub(r"\s", "", text).removeprefix("+").replace("\u2212", "-")


def _same_interval(interval: Interval, expected: Interval) -> bool:
    if interval[1::2] != expected[1::2]:
        return False
    return all(_same_end(*ends) for ends in zip(interval[::2], expected[::2], strict=True))


def _same_end(end: str, expected: str) -> bool:
    number, expected_number = read_quantity(end), read_quantity(expected)
    if number is not None and expected_number is not None:
        return same_quantity(number, expected_number, is_exact=True)
    return end == expected


def _as_point(text: str) -> str | None:
    """``x = 1, y = -4`` as ``(1, -4)``."""
    match = _POINT.match(text.strip(" $"))
    return f"({match[2]}, {match[4]})" if match and ord(match[1]) + 1 == ord(match[3]) else None


def _turned_equations(answer: str, expected: str) -> Iterator[str]:
    """An equation that is no assignment, or one with its sides exchanged, where an equation is expected."""
    if answer.count("=") != 1 or expected.count("=") != 1:
        return
    left, right = (side.strip(" $") for side in answer.split("="))
    if not re.fullmatch(r"[a-zA-Z](?:\([a-zA-Z]\))?", left):
        yield f"{left} = {right}"


def _same(text: str, expected: str) -> bool:
    """By math-verify, as equations or points, if both have the same variables."""
    sides = [[read_expression(side) for side in form.strip(" $").split("=")] for form in (text, expected)]
    if any(side is None for form in sides for side in form):
        return False
    texs = ["=".join(side.tex for side in form if side) for form in sides]
    letters = [frozenset().union(*(side.letters for side in form if side)) for form in sides]
    return letters[0] == letters[1] and maths_process.compare(*texs).same


def _same_roots(answer: str, expected: str) -> bool:
    """Two roots that are written as one: with ±, or as a list of both."""
    wanted = [_without_name(expected, sign) for sign in "+-"]
    if r"\pm" in answer or "±" in answer:
        found = [_without_name(answer, sign) for sign in "+-"]
    else:
        found = [_without_name(part, "") for part in re.split(r", ?| and ", answer)]
    if len(found) != 2:
        return False
    return any(all(_same(*pair) for pair in zip(found, order, strict=True)) for order in (wanted, wanted[::-1]))


def _without_name(text: str, sign: str) -> str:
    return re.sub(r"\A\$?\s?[a-z](?:_\d)? ?= ?", "", text).replace(r"\pm", sign).replace("±", sign).strip(" $")
