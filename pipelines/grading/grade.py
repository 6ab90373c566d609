"""Grades an answer: exact, numeric, choice, maths, ANLS, in that order, as far as the sample's answer allows them.

A sample with choices is judged by its choices alone; one whose answer is a number, by numbers; an expression, by
math-verify; ANLS is for text that was read off an image. ``truth.details`` may hold ``{"tolerance": 0.05}``, relative.
"""

from __future__ import annotations

from pipelines.answers import matches
from pipelines.grading.anls import reads_the_same, similarity
from pipelines.grading.base import Grade, Kind
from pipelines.grading.choice import chosen_letter
from pipelines.grading.expression import read_expression
from pipelines.grading.maths import asks_for_a_form, same_expression, same_spelling
from pipelines.grading.numeric import same_number
from pipelines.grading.quantity import read_quantity
from pipelines.grading.spelling import MAX_CHARS, bare
from pipelines.records import Sample
from pipelines.worked import details_of

READ_CATEGORIES = ("ocr", "text", "document")
"""A sample whose category has one of these words in it asks for text that is read off an image."""


def grade(given: str, sample: Sample) -> Grade:
    """Whether ``given`` is the sample's answer. Raises ``GradingFault`` when expressions cannot be compared at all."""
    if sample.choices:
        return _by_choice(given, sample)
    if matches(given, sample.answer):
        return _graded(True, "exact", given, sample)
    if max(len(given), len(sample.answer)) > MAX_CHARS:
        return Grade(False, "none", f"an answer of {len(given)} characters is none", 0.0)
    said, expected = bare(given), bare(sample.answer)
    if said and matches(said, expected):
        return _graded(True, "exact", given, sample)
    if asks_for_a_form(sample.question):
        return _graded(same_spelling(said, expected), "maths", given, sample, how="in the form that is asked for")
    return _by_value(said, expected, given, sample) or _by_words(said, expected, given, sample)


def _by_choice(given: str, sample: Sample) -> Grade:
    if len(given) > MAX_CHARS:
        return Grade(False, "none", f"an answer of {len(given)} characters is none", 0.0)
    chosen, right = chosen_letter(given, sample.choices), chosen_letter(sample.answer, sample.choices)
    return _graded(chosen is not None and chosen == right, "choice", given, sample)


def _by_value(said: str, expected: str, given: str, sample: Sample) -> Grade | None:
    same = same_number(said, expected, question=sample.question, tolerance=_tolerance(sample))
    if same is not None:
        return _graded(same, "numeric", given, sample)
    if read_quantity(expected) is None and read_expression(expected) is None:
        return None
    compared = same_expression(said, expected, question=sample.question)
    if compared is None:
        return None if read_quantity(expected) is None else _graded(False, "numeric", given, sample)
    return _graded(compared[0], "maths", given, sample, how=compared[1])


def _by_words(said: str, expected: str, given: str, sample: Sample) -> Grade:
    if not any(word in sample.category.casefold() for word in READ_CATEGORIES):
        return _graded(False, "none", given, sample)
    score = round(similarity(said, expected), 4)
    return _graded(reads_the_same(said, expected), "anls", given, sample, score=score)


def _tolerance(sample: Sample) -> float:
    return float(details_of(sample).get("tolerance", 0))


def _graded(right: bool, kind: Kind, given: str, sample: Sample, *, how: str = "", score: float | None = None) -> Grade:
    relation = "is" if right else "is not"
    detail = f"{given[:120]!r} {relation} {sample.answer[:120]!r}{f'; {how}' if how else ''}"
    return Grade(right, kind, detail, float(right) if score is None else score)
