r"""Whether two expressions are the same, by math-verify; numbers alone are compared in ``numeric.py``.

One expression is read as TeX, its size bounded before any library sees it: ``2*sqrt(3)/5``, ``2√3/5`` and
``\frac{2\sqrt3}{5}`` alike. Words, several statements, unevaluated sums over ranges, integrals, factorials and anything
longer than a final answer are no expression. One that only repeats the question ("84 + 103" of "Calculate 84 + 103") or
gives the number unevaluated is no answer, and lists keep their order unless they are sets.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from darkroom.pipelines.verification.grading.answer_text import levels
from darkroom.pipelines.verification.grading.math_worker import maths_process
from darkroom.pipelines.verification.grading.numeric import asks_for_exact
from darkroom.pipelines.verification.grading.quantity import read_quantity, same_quantity
from darkroom.pipelines.verification.grading.word_lists import any_of, read_words

MAX_CHARS, MAX_TOKENS, MAX_DEPTH = 200, 100, 8
MAX_DIGITS, MAX_POWERS, MAX_EXPONENT = 20, 6, 999

_DATA = read_words(__file__)
_FUNCTIONS = frozenset(_DATA["functions"])
_COMMANDS = _FUNCTIONS | frozenset(_DATA["commands"])
_TEX_OF: dict[str, str] = _DATA["tex_of"]
_TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?|\.\d+)|\\(?P<command>[a-zA-Z]+)|(?P<brace>\\[{}])|\\(?:[,;:!]|\s)|(?P<word>[a-zA-Z]+)"
    r"|(?P<sign>\*\*|[-+*/^_(){}\[\]|,=<>×·⋅÷≤≥≠∞πθ∪²³√])|\s+",
    re.ASCII,
)
_ASSIGNED = re.compile(r"\A\s*([a-zA-Z])\s*(?:\(\s*[a-zA-Z]\s*\)\s*)?=(.+)\Z", re.DOTALL)
_SIMPLE_POWER = re.compile(r"\^\{(\w)\}")
_SIMPLE_FRAC = re.compile(r"\\frac\{(\w+)\}\{(\w+)\}")


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
        return _SIMPLE_POWER.sub(r"^\1", _SIMPLE_FRAC.sub(r"\1/\2", tight))


@lru_cache(maxsize=1024)  # one answer is compared with many
def read_expression(text: str) -> Expression | None:
    """The one expression that the whole text is; None where it is none, or too large to be looked at."""
    if not text.strip() or len(text) > MAX_CHARS or re.search(r"[\d.]\s+[\d.]", text):
        return None
    parts = _tex(text)
    if parts is None or not _is_small(parts[0]):
        return None
    tex, letters = parts
    assigned = _ASSIGNED.match(tex)
    name, tex = (assigned[1], assigned[2]) if assigned else ("", tex)
    if not tex.strip() or tex.count("=") > (0 if assigned else 1):
        return None
    return Expression(tex.strip(), letters - {name}, name)


def _tex(text: str) -> tuple[str, frozenset[str]] | None:
    parts: list[str] = []
    letters: set[str] = set()
    end = 0
    while end < len(text):
        token = _TOKEN.match(text, end)
        if token is None or len(parts) > MAX_TOKENS:
            return None
        part, end = _part(token, letters), token.end()
        if part is None:
            return None
        parts.append(part)
    return _rooted("".join(parts)), frozenset(letters)


def _part(token: re.Match[str], letters: set[str]) -> str | None:
    if number := token["number"]:
        return number if len(number) <= MAX_DIGITS else None
    if command := token["command"]:
        return _TEX_OF.get(command, rf"\{command} ") if command in _COMMANDS else None
    if word := token["word"]:
        return _word(word, letters)
    if sign := token["sign"]:
        return _TEX_OF.get(sign, sign)
    return token["brace"] or " "


def _word(word: str, letters: set[str]) -> str | None:
    if word in _FUNCTIONS:
        return rf"\{word} "
    if word in ("pi", "inf", "oo"):
        return _TEX_OF[word]
    if len(word) > 2:
        return None
    letters.update(word)
    return " ".join(word) + " "


def _rooted(tex: str) -> str:
    r"""``\sqrt (x)`` as ``\sqrt{x}``: TeX would take the parenthesis alone."""
    parts, end = [], 0
    for root in re.finditer(r"\\sqrt\s*\(", tex):
        closing = _closing(tex, root.end())
        if root.start() < end or closing is None:
            continue
        parts += [tex[end : root.start()], r"\sqrt{", _rooted(tex[root.end() : closing]), "}"]
        end = closing + 1
    return "".join([*parts, tex[end:]])


def _closing(tex: str, start: int) -> int | None:
    depths = levels(tex[start:], "()")
    return start + depths.index(-1) if -1 in depths else None


def _is_small(tex: str) -> bool:
    exponents = [int(digits) for digits in re.findall(r"\^\s*+\{?+\s*+[-+]?+\s*+\(?(\d+)", tex)]
    small = all(exponent <= MAX_EXPONENT for exponent in exponents)
    tower = re.search(r"\^\s*(?:\{[^{}]*|\w)\^|\^[^-+*/^]{1,8}\^", tex)
    return small and not tower and max([0, *levels(tex)]) <= MAX_DEPTH and tex.count("^") <= MAX_POWERS


_FORM = re.compile(any_of(_DATA["asks_for_a_form"]), re.IGNORECASE)
_LIST = re.compile(r"\A[^(){}\[\]]*,[^(){}\[\]]*\Z")


def asks_for_a_form(question: str) -> bool:
    """Whether the question wants one form of its answer, so that another of the same value is no answer."""
    return _FORM.search(question) is not None


def same_spelling(answer: str, expected: str) -> bool:
    """Whether both are one expression in one form: 3×5 is 3*5 and not 15."""
    expression, expected_expression = read_expression(answer), read_expression(expected)
    return None not in (expression, expected_expression) and _spelled(expression) == _spelled(expected_expression)


def same_expression(answer: str, expected: str, *, question: str) -> tuple[bool, str] | None:
    """The verdict and how it came about; None where one of them is no expression."""
    expression, wanted_expression = read_expression(answer), read_expression(expected)
    if expression is None or wanted_expression is None:
        return None
    if expression.name and wanted_expression.name and expression.name != wanted_expression.name:
        return False, f"{expression.name} is not {wanted_expression.name}"
    if read_quantity(wanted_expression.tex) is not None:
        return _a_number(expression, wanted_expression, question)
    brackets = {_outer(expression), _outer(wanted_expression)} - {""}
    if len(brackets) > 1:
        return False, "a set is no tuple, and a tuple no interval"
    if expression.letters != wanted_expression.letters:
        return False, "other variables"
    if _spelled(expression) != _spelled(wanted_expression) and _spelled(expression) in re.sub(r"\s", "", question):
        return False, "repeats the question"
    compared = maths_process.compare(_as_tuple(expression.tex), _as_tuple(wanted_expression.tex))
    is_right = compared.same or (not asks_for_exact(question) and _rounds(compared.values[1], expression.tex))
    return is_right, compared.error or "compared by math-verify"


def _a_number(expression: Expression, expected: Expression, question: str) -> tuple[bool, str]:
    """A plain number is expected: it may be assigned ("x = 5") or stand for a constant (π/4 for 0.7854), no more."""
    quantity, expected_quantity = read_quantity(expression.tex), read_quantity(expected.tex)
    if quantity is not None and expected_quantity is not None:
        return same_quantity(quantity, expected_quantity, is_exact=asks_for_exact(question)), "numbers"
    if expression.letters or not re.search(r"\\(?:pi|sqrt)", expression.tex):
        return False, "not evaluated"
    compared = maths_process.compare(expression.tex, expected.tex)
    return _rounds(compared.values[0], expected.tex), compared.error or "its value compared"


def _rounds(value: str | None, number: str) -> bool:
    """Whether ``number``, as written, is the rounded ``value``."""
    exact, rounded = read_quantity(value or ""), read_quantity(number)
    return exact is not None and rounded is not None and rounded.can_be_rounded and same_quantity(rounded, exact)


def _as_tuple(tex: str) -> str:
    return f"({tex})" if _LIST.match(tex) else tex


def _outer(expression: Expression) -> str:
    """The bracket that an expression begins with."""
    bracket = re.match(r"\\\{|[(\[]", expression.tex)
    return bracket[0] if bracket else ""


def _spelled(expression: Expression | None) -> str:
    return expression.spelled if expression else ""
