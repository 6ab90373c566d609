"""The rules, one per kind of answer: each reads both answers by itself and compares, whatever the others would say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipelines.grading.base import Grade, graded, refused
from pipelines.grading.boxes import LEAST_OVERLAP, same_box
from pipelines.grading.choice import chosen_letter
from pipelines.grading.expression import read_expression
from pipelines.grading.hedges import hedging_words, turning_words
from pipelines.grading.lists import same_list
from pipelines.grading.maths import asks_for_a_form, same_expression, same_spelling
from pipelines.grading.numeric import in_digits, same_form, same_number, with_unit
from pipelines.grading.quantity import read_quantity
from pipelines.grading.spelling import MAX_CHARS, bare
from pipelines.grading.words import same_words
from pipelines.records import Grader, GraderKind, Sample

Rule = Callable[[str, Sample, Grader], Grade]

MAX_ANSWER_CHARS = 4000
"""Not even an answer to a question whose own answer is long is longer."""


def rule_of(grader: Grader) -> Rule:
    """The rule for the grader's kind."""
    return _RULES[grader.kind]


def too_long(given: str, sample: Sample, *, limit: int | None = None) -> Grade | None:
    """The refusal of an answer that is no final answer for its length; None where it may be one."""
    most = min(max(MAX_CHARS, 2 * len(sample.answer)), MAX_ANSWER_CHARS) if limit is None else limit
    return Grade(False, "none", f"an answer of {len(given)} characters is none", 0.0) if len(given) > most else None


def by_choice(given: str, sample: Sample) -> Grade:
    """The letter or the text of the right choice, and of no other."""
    chosen, right = chosen_letter(given, sample.choices), chosen_letter(sample.answer, sample.choices)
    return graded(chosen is not None and chosen == right, "choice", given, sample)


def by_value(said: str, expected: str, given: str, sample: Sample, *, tolerance: float = 0) -> Grade | None:
    """Numbers by value, expressions by math-verify; None where ``expected`` is neither or ``said`` no expression."""
    same = same_number(said, expected, question=sample.question, tolerance=tolerance)
    if same is not None:
        return graded(same, "numeric", given, sample)
    if read_quantity(expected) is None and read_expression(expected) is None:
        return None
    compared = same_expression(said, expected, question=sample.question)
    if compared is None:
        return None if read_quantity(expected) is None else graded(False, "numeric", given, sample)
    return graded(compared[0], "maths", given, sample, how=compared[1])


def _choice(given: str, sample: Sample, _: Grader) -> Grade:
    return by_choice(given, sample) if sample.choices else refused(given, sample, "the question has no choices")


def _number(given: str, sample: Sample, grader: Grader) -> Grade:
    said, expected = (with_unit(in_digits(bare(text)), grader.unit) for text in (given, sample.answer))
    if read_quantity(expected) is None:
        return refused(given, sample, "the expected answer is no number")
    if (hedging_words(said) | turning_words(said)) - (hedging_words(expected) | turning_words(expected)):
        return graded(False, "numeric", given, sample, how="hedged or denied")
    if asks_for_a_form(sample.question) and not grader.tolerance:
        same = same_form(said, expected, question=sample.question)
        return graded(same, "numeric", given, sample, how="in the form that is asked for")
    found = by_value(said, expected, given, sample, tolerance=grader.tolerance)
    return found or graded(False, "numeric", given, sample)


def _maths(given: str, sample: Sample, _: Grader) -> Grade:
    said, expected = bare(given), bare(sample.answer)
    # a variable's case means something: no comparison as words comes before
    if said and said.split() == expected.split():
        return graded(True, "maths", given, sample, how="spelled the same")
    if asks_for_a_form(sample.question):
        return graded(same_spelling(said, expected), "maths", given, sample, how="in the form that is asked for")
    found = by_value(said, expected, given, sample)
    return replace(found, kind="maths") if found else graded(False, "maths", given, sample)


def _text(given: str, sample: Sample, _: Grader) -> Grade:
    return graded(same_words(given, sample.answer), "exact", given, sample)


def _list(given: str, sample: Sample, grader: Grader) -> Grade:
    same = same_list(
        given, sample.answer, question=sample.question, is_ordered=grader.is_ordered, tolerance=grader.tolerance
    )
    return graded(same, "list", given, sample)


def _box(given: str, sample: Sample, grader: Grader) -> Grade:
    # a grader that forgot its bound would accept whatever touches the box
    least = grader.tolerance or LEAST_OVERLAP
    overlap = same_box(given, sample.answer)
    if overlap is None:
        return refused(given, sample, "not one box in the frame of the expected one")
    return graded(overlap >= least, "box", given, sample, how=f"IoU {overlap:.3f}", score=round(overlap, 4))


def _judged(given: str, sample: Sample, _: Grader) -> Grade:
    return graded(same_words(given, sample.answer), "judged", given, sample, how="compared without a judge")


_RULES: dict[GraderKind, Rule] = {
    "choice": _choice,
    "number": _number,
    "text": _text,
    "list": _list,
    "maths": _maths,
    "box": _box,
    "judged": _judged,
}
