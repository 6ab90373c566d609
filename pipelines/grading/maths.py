"""Whether two expressions are the same, by math-verify; numbers alone are not its business (``numeric.py``).

An expression that only repeats the question ("84 + 103" of "Calculate 84 + 103") or gives the number unevaluated is no
answer, and lists keep their order unless they are sets.
"""

from __future__ import annotations

import re

from pipelines.grading.expression import Expression, read_expression
from pipelines.grading.process import Compared, maths_process
from pipelines.grading.quantity import read_quantity, same_quantity

_FORM = re.compile(
    r"simplif|factor|expand|lowest terms|standard form|scientific notation"
    r"|as an? (?:\w+ )?(?:fraction|decimal|product|sum)|mixed number|rationali[sz]e|in the form|base[- ]\d"
    r"|binary|hexadecimal|decimal place|significant|nearest|round",
    re.IGNORECASE,
)
_LIST = re.compile(r"\A[^(){}\[\]]*,[^(){}\[\]]*\Z")


def asks_for_a_form(question: str) -> bool:
    """Whether the question wants one form of its answer, so that another of the same value is no answer."""
    return _FORM.search(question) is not None


def same_spelling(given: str, expected: str) -> bool:
    """Whether both are one expression in one form: 3×5 is 3*5 and not 15."""
    left, right = read_expression(given), read_expression(expected)
    return None not in (left, right) and _spelled(left) == _spelled(right)


def same_expression(given: str, expected: str, *, question: str) -> tuple[bool, str] | None:
    """The verdict and how it came about; None where one of them is no expression."""
    left, right = read_expression(given), read_expression(expected)
    if left is None or right is None:
        return None
    if left.name and right.name and left.name != right.name:
        return False, f"{left.name} is not {right.name}"
    if read_quantity(right.tex) is not None:
        return _a_number(left, right)
    if {_outer(left), _outer(right)} in ({"\\{", "("}, {"\\{", "["}):
        return False, "a set is no tuple"
    if left.letters != right.letters:
        return False, "other variables"
    if _spelled(left) != _spelled(right) and _spelled(left) in re.sub(r"\s", "", question):
        return False, "repeats the question"
    compared = maths_process.compare(_as_tuple(left.tex), _as_tuple(right.tex))
    return _is_right(compared, left, right), compared.fault or "compared by math-verify"


def _a_number(left: Expression, right: Expression) -> tuple[bool, str]:
    """A plain number is expected: it may be assigned ("x = 5") or stand for a constant (π/4 for 0.7854), no more."""
    one, other = read_quantity(left.tex), read_quantity(right.tex)
    if one is not None and other is not None:
        return same_quantity(one, other), "numbers"
    if left.letters or not re.search(r"\\(?:pi|sqrt)", left.tex):
        return False, "not evaluated"
    compared = maths_process.compare(left.tex, right.tex)
    return _rounds(compared.values[0], right.tex), compared.fault or "its value compared"


def _is_right(compared: Compared, left: Expression, right: Expression) -> bool:
    return compared.same or _rounds(compared.values[1], left.tex)


def _rounds(value: str | None, number: str) -> bool:
    """Whether ``number``, as written, is the rounded ``value``."""
    exact, rounded = read_quantity(value or ""), read_quantity(number)
    return exact is not None and rounded is not None and rounded.can_be_rounded and same_quantity(rounded, exact)


def _as_tuple(tex: str) -> str:
    return f"({tex})" if _LIST.match(tex) else tex


def _outer(expression: Expression) -> str:
    """The bracket that an expression begins with."""
    found = re.match(r"\\\{|[(\[]", expression.tex)
    return found[0] if found else ""


def _spelled(expression: Expression | None) -> str:
    return expression.spelled if expression else ""
