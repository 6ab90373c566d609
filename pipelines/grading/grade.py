"""Grades an answer: by the rule of its grader alone, or by the first rule that can read the sample's answer.

Without a grader the order is exact, numeric, choice, maths, ANLS: a sample with choices is judged by its choices alone;
one whose answer is a number, by numbers; an expression, by math-verify; ANLS is for text that was read off an image.
``truth.details`` may hold ``{"tolerance": 0.05}``, relative.
"""

from __future__ import annotations

from pipelines.answers import matches
from pipelines.grading.anls import reads_the_same, similarity
from pipelines.grading.base import Grade, graded
from pipelines.grading.hidden import hidden_in
from pipelines.grading.maths import asks_for_a_form, same_spelling
from pipelines.grading.rules import by_choice, by_value, rule_of, too_long
from pipelines.grading.spelling import MAX_CHARS, bare
from pipelines.records import Grader, Sample
from pipelines.worked import details_of

READ_CATEGORIES = ("ocr", "text", "document")
"""A sample whose category has one of these words in it asks for text that is read off an image."""


def grade(given: str, sample: Sample, grader: Grader | None = None) -> Grade:
    """Whether ``given`` is the sample's answer. Raises ``GradingFault`` when expressions cannot be compared at all.

    A ``judged`` grader finds right only what is spelled like the answer; ``pipelines.grading.judged`` asks a judge.
    """
    return _by_any_rule(given, sample) if grader is None else _by_grader(given, sample, grader)


def _by_grader(given: str, sample: Sample, grader: Grader) -> Grade:
    if found := too_long(given, sample):
        return found
    if found := hidden_in(given, sample):
        return found
    return rule_of(grader)(given, sample, grader)


def _by_any_rule(given: str, sample: Sample) -> Grade:
    if sample.choices:
        return too_long(given, sample, limit=MAX_CHARS) or by_choice(given, sample)
    if matches(given, sample.answer):
        return graded(True, "exact", given, sample)
    if found := too_long(max(given, sample.answer, key=len), sample, limit=MAX_CHARS):
        return found
    said, expected = bare(given), bare(sample.answer)
    if said and matches(said, expected):
        return graded(True, "exact", given, sample)
    if asks_for_a_form(sample.question):
        return graded(same_spelling(said, expected), "maths", given, sample, how="in the form that is asked for")
    tolerance = float(details_of(sample).get("tolerance", 0))
    return by_value(said, expected, given, sample, tolerance=tolerance) or _by_words(said, expected, given, sample)


def _by_words(said: str, expected: str, given: str, sample: Sample) -> Grade:
    if not any(word in sample.category.casefold() for word in READ_CATEGORIES):
        return graded(False, "none", given, sample)
    score = round(similarity(said, expected), 4)
    return graded(reads_the_same(said, expected), "anls", given, sample, score=score)
