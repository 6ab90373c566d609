"""Choice of the grader for a sample's answer.

Choices ask for their letters; four corners, where a place is asked for, for a box; numbers, expressions, lists and
short texts for their own rules; a sentence for a judge. ``truth.details`` may hold ``{"tolerance": 0.05, "unit":
"cm"}``, or the grader itself: ``{"grader": {"kind": "list", "is_ordered": true}}``.
"""

import math
import re
from dataclasses import replace
from typing import Any

import cattrs

from darkroom.pipelines.records import Grader, Sample, from_row
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import details_of, own_question, right_answers
from darkroom.pipelines.verification.grading.answer_text import bare
from darkroom.pipelines.verification.grading.boxes import LEAST_OVERLAP, read_box
from darkroom.pipelines.verification.grading.choices import with_choices
from darkroom.pipelines.verification.grading.dates import infinity, same_date
from darkroom.pipelines.verification.grading.lists import elements, solutions
from darkroom.pipelines.verification.grading.maths import as_rows, read_expression
from darkroom.pipelines.verification.grading.number_words import as_english, is_foreign
from darkroom.pipelines.verification.grading.numeric import as_number, read_quantity, same_span, units_of
from darkroom.pipelines.verification.grading.text_match import is_formula, is_to_the_letter
from darkroom.pipelines.verification.grading.word_lists import Patterns, any_of, read_words

MAX_TEXT_WORDS, MAX_ELEMENT_WORDS, SENTENCE_WORDS = 10, 3, 5

_DATA = read_words(__file__)
_RE = Patterns(_DATA)
_ORDER = re.compile(any_of(_DATA["order"]), re.IGNORECASE)


def grader_of(sample: Sample) -> Grader:
    """The grader for a sample. Raises ``RowError`` (malformed_row) when its details hold none that can be read."""
    details = details_of(sample)
    sample = replace(sample, question=own_question(sample.question))
    tolerance, unit = _tolerance(details.get("tolerance", 0)), str(details.get("unit", ""))
    grader = _told(details["grader"]) if "grader" in details else _found(sample, bare(sample.answer), tolerance, unit)
    return replace(grader, accepted=right_answers(sample)[1:] or grader.accepted)


def grader_of_accepted(sample: Sample, grader: Grader) -> Grader:
    """The grader for another accepted answer, which is ``sample.answer`` here; ``grader``: that of the sample's own. It
    has a rule of its own only where that is no wider: a text is never a list, a sentence or a box."""
    own = _found(sample, bare(sample.answer), grader.tolerance, grader.unit)
    has_own = own.kind in ("number", "maths", "text") and grader.kind != "judged"
    return own if has_own else replace(grader, accepted=None)


def _found(sample: Sample, answer: str, tolerance: float, unit: str) -> Grader:
    if with_choices(sample).choices:
        return Grader("choice")
    if _is_box(sample, answer):
        return Grader("box", LEAST_OVERLAP)
    if infinity(answer) is not None and not _is_read(sample):
        return Grader("number")
    if same_date(answer, answer) or (_RE.hour.match(answer) and _RE.asks_time.search(sample.question)):
        return Grader("text")  # "4 June" are no four things, "6 pm" no picometres
    if is_to_the_letter(answer, sample.question) or is_formula(answer, sample.question):
        return Grader("text")
    quantity, plain = read_quantity(answer), as_number(as_english(answer, sample.question))
    if quantity is None and (plain_quantity := read_quantity(plain)) is not None:
        is_part = "/" in plain and _RE.part.search(sample.question) is not None
        is_foreign_number = is_foreign(sample.question) or (plain.isdigit() and not answer.isascii())
        quantity = plain_quantity if plain_quantity.unit or is_foreign_number or is_part else None
    if quantity is not None and not (quantity.noun and _RE.house.match(answer)):
        own = quantity.unit.names[0] if quantity.unit in units_of(sample.question) else ""
        return Grader("number", tolerance, unit or own)
    if as_rows(answer) or len(solutions(answer)) > 1 or _is_point(answer, sample.question):
        return Grader("maths")
    if same_span(answer, answer, question=sample.question) and not _RE.asks_for_maths.search(sample.question):
        return Grader("text")
    if _is_list(sample, answer):
        ordered = bool(_ORDER.search(sample.question)) or bool(_RE.sequence.match(answer))
        return Grader("list", tolerance, is_ordered=ordered)
    if _is_maths(sample, answer):
        return Grader("maths")
    return Grader("judged" if _is_free_text(sample, answer) else "text")


def _told(row: Any) -> Grader:
    try:
        grader = from_row(Grader, row)
    except (cattrs.BaseValidationError, TypeError, AttributeError) as error:
        raise RowError(Reason.MALFORMED_ROW, f"truth.details.grader is no grader: {row!r}") from error
    _tolerance(grader.tolerance)
    return grader


def _tolerance(entry: Any) -> float:
    try:
        tolerance = float(entry)
    except (TypeError, ValueError):
        tolerance = math.nan
    if not 0 <= tolerance < 1:
        raise RowError(Reason.MALFORMED_ROW, f"a tolerance is a share 0..1 of the answer; found {entry!r}")
    return tolerance


def _is_box(sample: Sample, answer: str) -> bool:
    if (corners := read_box(answer)) is None:
        return False
    is_target = any(tuple(map(float, target.box)) == corners for target in sample.truth.boxes)
    is_place = not answer[:1].isdigit() and _RE.place.search(sample.question) is not None
    return is_target or is_place or _RE.corners.search(sample.question) is not None


def _is_point(answer: str, question: str) -> bool:
    quantities = [*map(read_quantity, elements(answer))]
    is_plain = all(number is not None and not number.unit and not number.noun for number in quantities)
    is_tuple = _RE.tuple.match(answer) is not None and (answer[0] == "(" or _RE.range.search(question) is not None)
    return len(quantities) > 1 and is_plain and is_tuple


def _is_list(sample: Sample, answer: str) -> bool:
    parts = elements(answer)
    if len(parts) < 2 or (_RE.tuple.match(answer) and not _RE.sequence.match(answer)) or _is_read(sample):
        return False
    is_maths = any(_RE.written_as_maths.search(element) and read_quantity(element) is None for element in parts)
    return not is_maths and all(len(element.split()) <= MAX_ELEMENT_WORDS for element in parts)


def _is_maths(sample: Sample, answer: str) -> bool:
    if _RE.written_as_maths.search(answer) or _RE.written_as_maths.search(sample.answer):
        return True
    is_mathematical = _RE.maths.search(sample.category) or _RE.asks_for_maths.search(sample.question)
    return is_mathematical is not None and read_expression(answer) is not None


def _is_read(sample: Sample) -> bool:
    return bool(_RE.read.search(sample.category) or _RE.one_thing.search(sample.question))


def _is_free_text(sample: Sample, answer: str) -> bool:
    if _is_read(sample):
        return False
    n_words = len(answer.split())
    is_sentence = n_words >= SENTENCE_WORDS and sample.answer.rstrip().endswith((".", "!"))
    return is_sentence or n_words > MAX_TEXT_WORDS
