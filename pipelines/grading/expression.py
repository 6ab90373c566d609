r"""Mathematical answers: one expression, its size bounded before any library sees it, written as TeX.

``2*sqrt(3)/5``, ``2√3/5`` and ``\frac{2\sqrt3}{5}`` are all read. Words, several statements, unevaluated sums over
ranges, integrals, factorials and anything longer than a final answer are not: they are no expression here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_CHARS, MAX_TOKENS, MAX_DEPTH = 200, 100, 8
MAX_DIGITS, MAX_POWERS, MAX_EXPONENT = 20, 6, 999

_FUNCTIONS = frozenset(
    ["sqrt", "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "log", "ln", "exp"]
)
_COMMANDS = _FUNCTIONS | frozenset(
    [
        "frac",
        "dfrac",
        "tfrac",
        "pi",
        "infty",
        "cdot",
        "times",
        "div",
        "le",
        "leq",
        "ge",
        "geq",
        "lt",
        "gt",
        "ne",
        "neq",
        "cup",
        "cap",
        "circ",
        "left",
        "right",
        "theta",
        "alpha",
        "beta",
        "lambda",
        "mu",
        "phi",
    ]
)
_SPELLED = {
    "**": "^", "*": r"\cdot ", "×": r"\cdot ", "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/", "≤": r"\le ", "≥": r"\ge ",
    "≠": r"\ne ", "∞": r"\infty ", "π": r"\pi ", "θ": r"\theta ", "∪": r"\cup ", "²": "^{2}", "³": "^{3}",
    "√": r"\sqrt ",
    "times": r"\cdot ", "dfrac": r"\frac ", "tfrac": r"\frac ", "leq": r"\le ", "geq": r"\ge ", "lt": "<", "gt": ">",
    "neq": r"\ne ", "left": "", "right": "", "inf": r"\infty ", "oo": r"\infty ", "pi": r"\pi ",
}  # fmt: skip
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


def read_expression(text: str) -> Expression | None:
    """The one expression that the whole text is; None where it is none, or too large to be looked at."""
    if not text.strip() or len(text) > MAX_CHARS or re.search(r"[\d.]\s+[\d.]", text):
        return None
    found = _tex(text)
    if found is None:
        return None
    tex, letters = found
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
        found = _TOKEN.match(text, end)
        if found is None or len(parts) > MAX_TOKENS:
            return None
        part = _part(found, letters)
        if part is None:
            return None
        parts.append(part)
        end = found.end()
    tex = _rooted("".join(parts))
    return (tex, frozenset(letters)) if _is_small(tex) else None


def _part(found: re.Match[str], letters: set[str]) -> str | None:
    if number := found["number"]:
        return number if len(number) <= MAX_DIGITS else None
    if command := found["command"]:
        return _SPELLED.get(command, rf"\{command} ") if command in _COMMANDS else None
    if word := found["word"]:
        return _word(word, letters)
    if sign := found["sign"]:
        return _SPELLED.get(sign, sign)
    return found["brace"] or " "


def _word(word: str, letters: set[str]) -> str | None:
    if word in _FUNCTIONS:
        return rf"\{word} "
    if word in ("pi", "inf", "oo"):
        return _SPELLED[word]
    if len(word) > 2:
        return None
    letters.update(word)
    return " ".join(word) + " "


def _rooted(tex: str) -> str:
    r"""``\sqrt (x)`` as ``\sqrt{x}``: TeX would take the parenthesis alone."""
    parts, end = [], 0
    for found in re.finditer(r"\\sqrt\s*\(", tex):
        closing = _closing(tex, found.end())
        if found.start() < end or closing is None:
            continue
        parts += [tex[end : found.start()], r"\sqrt{", _rooted(tex[found.end() : closing]), "}"]
        end = closing + 1
    return "".join([*parts, tex[end:]])


def _closing(tex: str, start: int) -> int | None:
    depth = 1
    for place in range(start, len(tex)):
        depth += {"(": 1, ")": -1}.get(tex[place], 0)
        if not depth:
            return place
    return None


def _is_small(tex: str) -> bool:
    depth = deepest = 0
    for letter in tex:
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(letter, 0)
        deepest = max(deepest, depth)
    exponents = [int(digits) for digits in re.findall(r"\^\s*\{?\s*[-+]?\s*\(?(\d+)", tex)]
    small = all(exponent <= MAX_EXPONENT for exponent in exponents)
    tower = re.search(r"\^\s*(?:\{[^{}]*|\w)\^|\^[^-+*/^]{1,8}\^", tex)
    return small and not tower and deepest <= MAX_DEPTH and tex.count("^") <= MAX_POWERS
