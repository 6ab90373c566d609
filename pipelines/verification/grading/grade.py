"""Grades an answer: by the rule of its grader alone, or by the first rule that can read the sample's answer.

Without a grader the order is exact, numeric, choice, maths, ANLS: a sample with choices is judged by its choices alone;
one whose answer is a number, by numbers; an expression, by math-verify; ANLS is for text that was read off an image.
``truth.details`` may hold ``{"tolerance": 0.05}``, relative.
"""

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Literal

from darkroom.pipelines.records import Grader, Sample
from darkroom.pipelines.records.answers import letters_of, matches
from darkroom.pipelines.records.samples import details_of, own_question, right_answers
from darkroom.pipelines.verification.grading import maths, numeric, text_match
from darkroom.pipelines.verification.grading.answer_text import MAX_CHARS, bare, hidden, open_words, without_quotes_of
from darkroom.pipelines.verification.grading.boxes import LEAST_OVERLAP, same_box
from darkroom.pipelines.verification.grading.choices import chosen_letter, chosen_letters, with_choices
from darkroom.pipelines.verification.grading.dates import same_reading
from darkroom.pipelines.verification.grading.lists import both_signs, elements, paired, same_list, solutions, variable
from darkroom.pipelines.verification.grading.number_words import as_english
from darkroom.pipelines.verification.grading.select_grader import grader_of_accepted
from darkroom.pipelines.verification.grading.sentences import cores, same_polarity

Kind = Literal["exact", "numeric", "choice", "maths", "anls", "list", "box", "judged", "none"]
"""By which rule an answer was judged; ``none`` where no rule could read it."""


@dataclass(frozen=True, slots=True)
class Grade:
    """Grade of an answer: whether it is right, by which rule, what was compared; ``score``: 1.0, 0.0 or the rule's."""

    right: bool
    kind: Kind
    detail: str
    score: float


def graded(right: bool, kind: Kind, answer: str, sample: Sample, *, how: str = "", score: float | None = None) -> Grade:
    """The grade of ``answer``, which a rule compared with the sample's answer."""
    relation = "is" if right else "is not"
    detail = f"{answer[:120]!r} {relation} {sample.answer[:120]!r}{f'; {how}' if how else ''}"
    return Grade(right, kind, detail, float(right) if score is None else score)


def refused(answer: str, sample: Sample, why: str) -> Grade:
    """The grade of ``answer``, which no rule is shown."""
    return graded(False, "none", answer, sample, how=why)


MAX_ANSWER_CHARS = 4000
"""Not even an answer to a question whose own answer is long is longer."""


def too_long(answer: str, sample: Sample, *, limit: int | None = None) -> Grade | None:
    """The refusal of an answer that is no final answer for its length; None where it may be one."""
    most = min(max(MAX_CHARS, 2 * len(sample.answer)), MAX_ANSWER_CHARS) if limit is None else limit
    return Grade(False, "none", f"an answer of {len(answer)} characters is none", 0.0) if len(answer) > most else None


def by_choice(answer: str, sample: Sample) -> Grade:
    """The letter or the text of each right choice, and of no other."""
    several = frozenset(letters_of(sample.answer, sample.choices))
    if len(several) > 1:
        given = chosen_letters(answer, sample.choices, sample.question)
        return graded(several in given and not open_words(answer), "choice", answer, sample)
    letters = [chosen_letter(text, sample.choices, sample.question) for text in (answer, sample.answer)]
    return graded(letters[0] is not None and letters[0] == letters[1], "choice", answer, sample)


def by_value(bare_answer: str, expected: str, answer: str, sample: Sample, *, tolerance: float = 0) -> Grade | None:
    """Numbers by value, expressions by math-verify; None where either is neither."""
    same = numeric.same_number(bare_answer, expected, question=sample.question, tolerance=tolerance)
    if same is not None:
        return graded(same, "numeric", answer, sample)
    if numeric.read_quantity(expected) is None and maths.read_expression(expected) is None:
        return None
    expression = maths.read_expression(bare_answer)
    if expression and expression.name and maths.other_variable(expression.name, sample.question):
        return graded(False, "maths", answer, sample, how=f"the value of {expression.name}")
    if (compared := maths.same_expression(bare_answer, expected, question=sample.question)) is None:
        return None if numeric.read_quantity(expected) is None else graded(False, "numeric", answer, sample)
    return graded(compared[0], "maths", answer, sample, how=compared[1])


def _number(answer: str, sample: Sample, grader: Grader) -> Grade:
    number = numeric.as_number(as_english(bare(sample.answer), sample.question))
    expected = numeric.as_number(numeric.with_unit(number, grader.unit))
    if numeric.read_quantity(expected) is None:
        return _reading(answer, sample)
    unquoted = numeric.none_as_zero(without_quotes_of(sample.question, answer), expected)
    if open_words(unquoted) - open_words(expected):
        return graded(False, "numeric", answer, sample, how="hedged or denied")
    unquoted = numeric.without_parts(unquoted, expected)
    verdicts = (_one_number(core, expected, answer, sample, grader) for core in cores(unquoted, sample.question))
    return next((verdict for verdict in verdicts if verdict.right), graded(False, "numeric", answer, sample))


def _one_number(core: str, expected: str, answer: str, sample: Sample, grader: Grader) -> Grade:
    core = numeric.without_about(as_english(core, sample.question), expected, tolerance=grader.tolerance)
    numbers = [*numeric.spellings(core, expected, question=sample.question, unit=grader.unit)]
    if maths.asks_for_a_form(sample.question) and not grader.tolerance:
        same = numeric.same_form(numbers[0], expected, question=sample.question)
        return graded(same, "numeric", answer, sample, how="in the form that is asked for")
    last = maths.result(numbers[0], sample.question)
    for part in (*numbers, numeric.with_unit(numeric.as_number(last), grader.unit) if last else None):
        verdict = by_value(part, expected, answer, sample, tolerance=grader.tolerance) if part else None
        if verdict and verdict.right:
            return verdict
    return graded(False, "numeric", answer, sample)


def _reading(answer: str, sample: Sample) -> Grade:
    """Grade an answer that is no plain number: infinity, a ratio, a time."""
    expected = bare(sample.answer)
    verdicts = [same_reading(core, expected, question=sample.question) for core in cores(answer, sample.question)]
    if verdicts[0] is None:
        return refused(answer, sample, "the expected answer is no number")
    return graded(any(verdicts), "numeric", answer, sample)


def _maths(answer: str, sample: Sample) -> Grade:
    expected = bare(sample.answer)
    wrong = graded(False, "maths", answer, sample)
    if open_words(maths.in_symbols(answer)) - open_words(maths.in_symbols(expected)):
        return _solved(answer, expected, sample) or wrong
    verdicts = (_one_expression(core, expected, answer, sample) for core in cores(answer, sample.question))
    return next((verdict for verdict in verdicts if verdict.right), _solved(answer, expected, sample) or wrong)


def _one_expression(core: str, expected: str, answer: str, sample: Sample) -> Grade:
    # a variable's case means something: no comparison as words comes before
    if core and core.split() == expected.split():
        return graded(True, "maths", answer, sample, how="spelled the same")
    if maths.asks_for_a_form(sample.question):
        parts = filter(None, (core, maths.result(core, sample.question)))
        same = any(maths.same_spelling(part, expected) for part in parts)
        return graded(same, "maths", answer, sample, how="in the form that is asked for")
    expression, expected_expression = maths.in_symbols(core), maths.in_symbols(expected)
    if "".join(expression.split()) == "".join(expected_expression.split()):
        return graded(True, "maths", answer, sample, how="spelled the same in symbols")
    if maths.as_rows(core) or maths.as_rows(expected, is_vector="vector" in sample.question):
        both = [maths.as_rows(text, is_vector=True) for text in (core, expected)]
        shapes, cells = [[*map(len, rows)] for rows in both], zip(*(chain(*rows) for rows in both), strict=False)
        same = shapes[0] == shapes[1] and all(_is_value(cell, each, sample) for cell, each in cells)
        return graded(same, "maths", answer, sample, how="compared by cells")
    unions, expected_unions = (text.split(" ∪ ") for text in (expression, expected_expression))
    if len(unions) > 1 and paired(unions, expected_unions, maths.same_form_of):
        return graded(True, "maths", answer, sample, how="compared as intervals")
    if (is_same := maths.same_form_of(expression, expected_expression)) is not None:
        return graded(is_same, "maths", answer, sample, how="compared as an equation or an interval")
    names = {each.name for each in map(maths.read_expression, (expression, expected_expression)) if each and each.name}
    if len(names) > 1:
        return graded(False, "maths", answer, sample, how="the value of another variable")
    for part in (expression, maths.result(expression, sample.question)):
        verdict = by_value(part, expected_expression, answer, sample) if part else None
        if verdict and verdict.right:
            return replace(verdict, kind="maths")
    return graded(False, "maths", answer, sample)


def _solved(answer: str, expected: str, sample: Sample) -> Grade | None:
    """Several values of one variable, "x = 2 or x = -3", where such are expected."""
    expected_values = solutions(expected) or both_signs([expected] if "±" in expected or r"\pm" in expected else ())
    if len(expected_values) < 2:
        return None
    is_value = partial(_is_value, sample=sample)
    for core in cores(answer, sample.question):
        values = solutions(core) or both_signs(elements(core.replace(" or ", ", ")) if "=" not in core else ())
        if variable(core) in ("", variable(expected)) and paired(values, expected_values, is_value):
            return graded(True, "maths", answer, sample, how="compared as solutions")
    return None


def _is_value(text: str, expected: str, sample: Sample) -> bool:
    verdict = by_value(maths.in_symbols(text), maths.in_symbols(expected), text, sample)
    return verdict is not None and verdict.right


def _text(answer: str, sample: Sample) -> Grade:
    if (polarity := same_polarity(answer, sample.answer, question=sample.question)) is not None:
        return graded(polarity, "exact", answer, sample)
    same = any(text_match.same_text(core, sample.answer, sample.question) for core in cores(answer, sample.question))
    same = same or text_match.same_place(bare(answer), bare(sample.answer), sample.question)
    return graded(same, "exact", answer, sample)


def _box(answer: str, sample: Sample, grader: Grader) -> Grade:
    # a grader that forgot its bound would accept whatever touches the box
    least = grader.tolerance or LEAST_OVERLAP
    if (overlap := same_box(answer, sample.answer, sample.question)) is None:
        return refused(answer, sample, "not one box in the frame of the expected one")
    return graded(overlap >= least, "box", answer, sample, how=f"IoU {overlap:.3f}", score=round(overlap, 4))


READ_CATEGORIES = ("ocr", "text", "document")
"""A sample whose category has one of these words in it asks for text that is read off an image."""


def grade(answer: str, sample: Sample, grader: Grader | None = None) -> Grade:
    """Return whether ``answer`` is the sample's answer, or another that is accepted, for a ``judged`` grader only by
    spelling (``judged.py`` asks a judge). Raises ``GradingError`` when expressions cannot be compared at all."""
    sample = replace(sample, question=own_question(sample.question))
    sample = with_choices(sample) if grader is None or grader.kind == "choice" else sample
    if (first := _by_rule(answer, sample, grader)).right or sample.choices:
        return first
    others = right_answers(sample)[1:] if grader is None or grader.accepted is None else grader.accepted
    for other in (replace(sample, answer=text) for text in others):
        verdict = _by_rule(answer, other, None if grader is None else grader_of_accepted(other, grader))
        if verdict.right:
            return verdict
    return first


def _by_rule(answer: str, sample: Sample, grader: Grader | None) -> Grade:
    if grader is None:
        return _by_any_rule(answer, sample)
    if rejection := too_long(answer, sample):
        return rejection
    if characters := sorted(hidden(answer) - hidden(sample.answer)):
        names = ", ".join(f"U+{ord(character):04X}" for character in characters[:5])
        return refused(answer, sample, f"unseen characters: {names}")
    match grader.kind:
        case "choice" if not sample.choices:
            return refused(answer, sample, "the question has no choices")
        case "choice":
            return by_choice(answer, sample)
        case "number":
            return _number(answer, sample, grader)
        case "text":
            return _text(answer, sample)
        case "list":
            question, is_ordered = sample.question, grader.is_ordered
            same = same_list(
                answer, sample.answer, question=question, is_ordered=is_ordered, tolerance=grader.tolerance
            )
            return graded(same, "list", answer, sample)
        case "maths":
            return _maths(answer, sample)
        case "box":
            return _box(answer, sample, grader)
        case "judged":
            same = text_match.same_words(answer, sample.answer)
            return graded(same, "judged", answer, sample, how="compared without a judge")


def _by_any_rule(answer: str, sample: Sample) -> Grade:
    if sample.choices:
        return too_long(answer, sample, limit=MAX_CHARS) or by_choice(answer, sample)
    if matches(answer, sample.answer):
        return graded(True, "exact", answer, sample)
    if rejection := too_long(max(answer, sample.answer, key=len), sample, limit=MAX_CHARS):
        return rejection
    bare_answer, expected = bare(answer), bare(sample.answer)
    if bare_answer and matches(bare_answer, expected):
        return graded(True, "exact", answer, sample)
    if maths.asks_for_a_form(sample.question):
        same = maths.same_spelling(bare_answer, expected)
        return graded(same, "maths", answer, sample, how="in the form that is asked for")
    tolerance = float(details_of(sample).get("tolerance", 0))
    if verdict := by_value(bare_answer, expected, answer, sample, tolerance=tolerance):
        return verdict
    if not any(word in sample.category.casefold() for word in READ_CATEGORIES):
        return graded(False, "none", answer, sample)
    score = round(text_match.similarity(bare_answer, expected), 4)
    return graded(text_match.reads_the_same(bare_answer, expected), "anls", answer, sample, score=score)
