r"""Comparison of expressions by math-verify, and of equations, points and intervals; numbers alone: ``numeric.py``.

One expression is read as TeX, its size bounded before any library sees it: ``2*sqrt(3)/5``, ``2√3/5`` and
``\frac{2\sqrt3}{5}`` alike. Words, several statements, unevaluated sums over ranges, integrals, factorials and anything
longer than a final answer are no expression. One that only repeats the question ("84 + 103" of "Calculate 84 + 103") or
gives the number unevaluated is no answer, and lists keep their order unless they are sets.

Forms that math-verify tells apart are made one first: ``x > 3`` and ``(3, ∞)``, ``x = 1, y = -4``.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from darkroom.pipelines.verification.grading.answer_text import levels
from darkroom.pipelines.verification.grading.math_worker import maths_process
from darkroom.pipelines.verification.grading.number_words import in_digits
from darkroom.pipelines.verification.grading.numeric import EXACT, read_quantity, same_quantity
from darkroom.pipelines.verification.grading.word_lists import Patterns, any_of, read_words, rewrites, rewritten

MAX_CHARS, MAX_TOKENS, MAX_DEPTH = 200, 100, 8
MAX_DIGITS, MAX_POWERS, MAX_EXPONENT = 20, 6, 999

_DATA = read_words(__file__)
_RE = Patterns(_DATA)
_FUNCTIONS = frozenset(_DATA["functions"])
_COMMANDS = _FUNCTIONS | frozenset(_DATA["commands"])
_TEX_OF: dict[str, str] = _DATA["tex_of"]


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression as TeX. ``letters``: its variables; ``name``: what it is assigned to ("x = 5"), or empty."""

    tex: str
    letters: frozenset[str]
    name: str = ""

    @property
    def spelled(self) -> str:
        """The same for all spellings of one expression, and for no other form of it."""
        tight = re.sub(r"\s", "", self.tex.replace(r"\cdot", "*"))
        return _RE.simple_power.sub(r"\1\2", _RE.simple_frac.sub(r"\1/\2", tight))


@lru_cache(maxsize=1024)  # one answer is compared with many
def read_expression(text: str) -> Expression | None:
    """The one expression that the whole text is; None where it is none, or too large to be looked at."""
    if not text.strip() or len(text) > MAX_CHARS or re.search(r"[\d.]\s+[\d.]", text):
        return None
    if (parts := _tex(text)) is None or not _is_small(parts[0]):
        return None
    tex, letters = parts
    assigned = _RE.assigned.match(tex)
    name, tex = (assigned[1], assigned[2]) if assigned else ("", tex)
    if not tex.strip() or tex.count("=") > (0 if assigned else 1):
        return None
    return Expression(tex.strip(), letters - {name}, name)


def _tex(text: str) -> tuple[str, frozenset[str]] | None:
    parts: list[str] = []
    letters: set[str] = set()
    end = 0
    while end < len(text):
        if (token := _RE.token.match(text, end)) is None or len(parts) > MAX_TOKENS:
            return None
        if (part := _part(token, letters)) is None:
            return None
        parts.append(part)
        end = token.end()
    return _rooted("".join(parts)), frozenset(letters)


def _part(token: re.Match[str], letters: set[str]) -> str | None:
    if number := token["number"]:
        return number if len(number) <= MAX_DIGITS else None
    if command := token["command"]:
        return _TEX_OF.get(command, rf"\{command} ") if command in _COMMANDS else None
    if word := token["word"]:
        if word in _FUNCTIONS:
            return rf"\{word} "
        if word in ("pi", "inf", "oo"):
            return _TEX_OF[word]
        if len(word) > 2:
            return None
        letters.update(word)
        return " ".join(word) + " "
    if sign := token["sign"]:
        return _TEX_OF.get(sign, sign)
    return token["brace"] or " "


def _rooted(tex: str) -> str:
    r"""``\sqrt (x)`` as ``\sqrt{x}``: TeX would take the parenthesis alone."""
    parts: list[str] = []
    end = 0
    for root in re.finditer(r"\\sqrt\s*\(", tex):
        depths = levels(tex[root.end() :], "()")
        if root.start() < end or -1 not in depths:
            continue
        closing = root.end() + depths.index(-1)
        parts += [tex[end : root.start()], r"\sqrt{", _rooted(tex[root.end() : closing]), "}"]
        end = closing + 1
    return "".join([*parts, tex[end:]])


def _is_small(tex: str) -> bool:
    exponents = [int(digits) for digits in re.findall(r"\^\s*+\{?+\s*+[-+]?+\s*+\(?(\d+)", tex)]
    small = all(exponent <= MAX_EXPONENT for exponent in exponents)
    tower = re.search(r"\^\s*(?:\{[^{}]*|\w)\^|\^[^-+*/^]{1,8}\^", tex)
    return small and not tower and max([0, *levels(tex)]) <= MAX_DEPTH and tex.count("^") <= MAX_POWERS


_FORM = re.compile(any_of(_DATA["asks_for_a_form"]), re.IGNORECASE)


def asks_for_a_form(question: str) -> bool:
    """Return whether the question wants one form of its answer, so that another of the same value is no answer."""
    return _FORM.search(question) is not None


def same_spelling(answer: str, expected: str) -> bool:
    """Return whether both are one expression in one form: 3×5 is 3*5 and not 15."""
    expression, expected_expression = read_expression(answer), read_expression(expected)
    if not expression or not expected_expression:
        return False
    products = [each.spelled for each in (expression, expected_expression)]
    if any(_RE.sum.search(_RE.in_brackets.sub("", product)) for product in products):
        return products[0] == products[1]
    factors, expected_factors = (sorted(_RE.at_factor.split(product)) for product in products)
    return factors == expected_factors


def same_expression(answer: str, expected: str, *, question: str) -> tuple[bool, str] | None:
    """The verdict and how it came about; None where one of them is no expression."""
    expression, wanted_expression = read_expression(answer), read_expression(expected)
    if expression is None or wanted_expression is None:
        return None
    if expression.name and wanted_expression.name and expression.name != wanted_expression.name:
        return False, f"{expression.name} is not {wanted_expression.name}"
    if read_quantity(wanted_expression.tex) is not None:
        return _a_number(expression, wanted_expression, question)
    expressions = (expression, wanted_expression)
    if len({bracket[0] for each in expressions if (bracket := _RE.bracket.match(each.tex))}) > 1:
        return False, "a set is no tuple, and a tuple no interval"
    if expression.letters != wanted_expression.letters:
        return False, "other variables"
    if expression.spelled != wanted_expression.spelled and expression.spelled in re.sub(r"\s", "", question):
        return False, "repeats the question"
    texs = [f"({each.tex})" if _RE.list.match(each.tex) else each.tex for each in expressions]
    compared = maths_process.compare(*texs)
    is_right = compared.same or (not EXACT.search(question) and _rounds(compared.values[1], expression.tex))
    return is_right, compared.error or "compared by math-verify"


def _a_number(expression: Expression, expected: Expression, question: str) -> tuple[bool, str]:
    """A plain number is expected: it may be assigned ("x = 5") or stand for a constant (π/4 for 0.7854), no more."""
    quantity, expected_quantity = read_quantity(expression.tex), read_quantity(expected.tex)
    if quantity is not None and expected_quantity is not None:
        return same_quantity(quantity, expected_quantity, is_exact=bool(EXACT.search(question))), "numbers"
    if expression.letters or not re.search(r"\\(?:pi|sqrt)", expression.tex):
        return False, "not evaluated"
    compared = maths_process.compare(expression.tex, expected.tex)
    return _rounds(compared.values[0], expected.tex), compared.error or "its value compared"


def _rounds(value: str | None, number: str) -> bool:
    """Return whether ``number``, as written, is the rounded ``value``."""
    exact, rounded = read_quantity(value or ""), read_quantity(number)
    return exact is not None and rounded is not None and rounded.can_be_rounded and same_quantity(rounded, exact)


_IN_WORDS = read_words(__file__, "equations")
_WORDS = rewrites([(f"(?i){pattern}", symbol) for symbol, pattern in _IN_WORDS["symbols"].items()])
_TURNED = {"<": ">", ">": "<", "≤": "≥", "≥": "≤"}

Interval = tuple[str, bool, str, bool]
"""Lower end, whether it belongs to the interval, upper end, whether it does."""


def in_symbols(text: str) -> str:
    """An expression with its words as symbols: "negative infinity", "x is greater than 3", "one half"."""
    if len(text) > MAX_CHARS:
        return text
    if (number := in_digits(text)) != text and read_quantity(number) is not None:
        return number
    unbuilt = _RE.built.sub(r"\1", " ".join(text.strip(" $").split()))
    plain = _RE.set.sub(r"\\{\1\\}", _RE.units.sub("", rewritten(unbuilt, _WORDS)))
    return _RE.named_point.sub("", _RE.function.sub("y =", plain))


def as_rows(text: str, *, is_vector: bool = False) -> list[list[str]]:
    r"""The cells of ``\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}``, ``[[1, 2], [3, 4]]``, ``[1 2; 3 4]``; else none.
    ``is_vector``: also those of ``(1, 2)`` and ``⟨1, 2⟩``; a row and a column are the same then."""
    plain = _RE.sized.sub("", text).strip(" $") if len(text) <= 2 * MAX_CHARS else ""
    plain = plain.replace("(", "[").replace(")", "]") if plain.startswith("((") else plain
    if matrix := _RE.matrix.match(plain):
        rows = [line.split("&") for line in matrix[2].split(r"\\")]
    elif _RE.rows.match(plain):
        rows = [line.split(",") for line in re.findall(r"\[([^\[\]]+)\]", plain[1:-1])]
    elif _RE.semicolons.match(plain):
        rows = [re.split(r"[,\s]\s*+", line.strip()) for line in plain[1:-1].split(";")]
    else:
        vector = _RE.vector.match(plain) if is_vector else None
        rows = [vector[1].split(",")] if vector else []
    rows = [[cell.strip() for cell in row] for row in rows if any(map(str.strip, row))]
    rows = [[cell] for cell in rows[0]] if is_vector and len(rows) == 1 else rows
    return rows if len({*map(len, rows)}) == 1 and all(map(all, rows)) else []


def same_form_of(answer: str, expected: str) -> bool | None:
    """Return whether two texts are one interval, point, equation or pair of roots; None where expected is none."""
    if max(len(answer), len(expected)) > MAX_CHARS:
        return None
    if (point := _RE.point.match(answer.strip(" $"))) and ord(point[1]) + 1 == ord(point[3]):  # x = 1, y = -4
        return _same(f"({point[2]}, {point[4]})", expected)
    if (expected_ends := _interval(expected)) is not None:
        interval = _interval(answer)
        # two numbers in round brackets may be a point as well: that is compared elsewhere
        if interval is None:
            return None
        # an interval in brackets names no variable
        letters = [set(re.findall(r"(?<![a-zA-Z\\])[a-z](?![a-zA-Z])", text)) for text in (answer, expected)]
        is_one_variable = not letters[0] or not letters[1] or letters[0] == letters[1]
        ends = zip(interval[::2], expected_ends[::2], strict=True)
        return is_one_variable and interval[1::2] == expected_ends[1::2] and all(_same_end(*pair) for pair in ends)
    if answer.count("=") == expected.count("=") == 1:
        first, second = (side.strip(" $") for side in answer.split("="))
        if not re.fullmatch(r"[a-zA-Z](?:\([a-zA-Z]\))?", first):  # an equation, no assignment
            return _same(f"{first} = {second}", expected)
    return None


def result(text: str, question: str) -> str | None:
    """The last side of "7^2 = 49" or "Area = 16π", if what stands before it is the question's or has that value."""
    *before, last = (side.strip(" $") for side in _RE.degrees.sub("", text).split("="))
    if not before or len(text) > MAX_CHARS or not last or len(before) > 2:
        return None
    return last if all(_is_before(side, last, question) for side in before) else None


def other_variable(name: str, question: str) -> bool:
    """Return whether the question asks for the value of another variable than ``name``."""
    variables = {match[1] for match in _RE.asked.finditer(question)}
    return bool(variables) and name not in variables


def _is_before(side: str, last: str, question: str) -> bool:
    tight, tight_question = _tight(side), _tight(_RE.degrees.sub("", question))
    if not tight or (len(tight) > 2 and tight in tight_question):
        angles = _RE.angle_named.findall(_tight(re.split(r"[.!]\s", question.strip())[-1]))
        return not (_RE.angle_named.fullmatch(tight) and angles) or tight in angles
    if re.fullmatch(r"[A-Za-z]", side.strip()):
        return not other_variable(side.strip(), question)
    first, value = read_expression(side), read_expression(last)
    if first is None or value is None or first.letters or value.letters or read_quantity(side) is not None:
        return False
    return maths_process.compare(first.tex, value.tex).same


def _tight(text: str) -> str:
    """Remove spaces and name angles: "m∠2" is "angle 2"."""
    text_with_angles = re.sub(r"\bm ?(?=∠|\\angle)", "", text).replace("∠", "angle").replace("\\angle", "angle")
    return re.sub(r"\s", "", text_with_angles).casefold()


def _interval(text: str) -> Interval | None:
    plain = text.strip(" $").replace(r"\left", "").replace(r"\right", "").replace(r"\le ", "≤").replace(r"\leq", "≤")
    plain = plain.replace(r"\geq", "≥").replace(r"\ge ", "≥").replace(r"\infty", "∞").replace(r"\in ", "∈")
    plain = plain.replace("<=", "≤").replace(">=", "≥").strip(" $")
    if match := _RE.between.match(plain):
        return _end(match[1]), match[2] == "≤", _end(match[5]), match[4] == "≤"
    if match := _RE.bound.match(plain):
        return _half(match[2], match[3])
    if match := _RE.bound_behind.match(plain):
        return _half(_TURNED[match[2]], match[1])
    if match := _RE.interval.match(plain):
        return _end(match[2]), match[1] == "[", _end(match[3]), match[4] == "]"
    return None


def _half(sign: str, end: str) -> Interval:
    closed = sign in "≤≥"
    return ("-∞", False, _end(end), closed) if sign in "<≤" else (_end(end), closed, "∞", False)


def _end(text: str) -> str:
    return re.sub(r"\s", "", text).removeprefix("+").replace("\u2212", "-")


def _same_end(end: str, expected: str) -> bool:
    number, expected_number = read_quantity(end), read_quantity(expected)
    if number is not None and expected_number is not None:
        return same_quantity(number, expected_number, is_exact=True)
    return end == expected


def _same(text: str, expected: str) -> bool:
    """Compare by math-verify, as equations or points, if both have the same variables."""
    sides = [[read_expression(side) for side in form.strip(" $").split("=")] for form in (text, expected)]
    if any(side is None for form in sides for side in form):
        return False
    texs = ["=".join(side.tex for side in form if side) for form in sides]
    letters = [frozenset().union(*(side.letters for side in form if side)) for form in sides]
    return letters[0] == letters[1] and maths_process.compare(*texs).same
