"""Grading: whether a model's free words give a sample's answer, however they spell it, and by which rule.

    from darkroom.pipelines.verification.grading import grade, grader_of

    grade(r"\\boxed{2\\sqrt{3}}", sample)                       # Grade(right=True, kind="maths", detail="…")
    grade("red, blue and green", sample, grader_of(sample))    # by that grader's rule alone

``darkroom.pipelines.records.answers`` compares spellings only; this package also knows units, roundings, expressions,
lists, boxes and letters lost by an OCR reader. It accepts nothing that hedges, negates or lists what was not asked for.
Graders are tried on corrupted answers (``measure_discrimination``). ``judged.py`` asks a judge about free text.
"""

from darkroom.pipelines.verification.grading.corruptions import (
    Corruption as Corruption,
    Discrimination as Discrimination,
    corruptions as corruptions,
    measure_discrimination as measure_discrimination,
    require_discrimination as require_discrimination,
)
from darkroom.pipelines.verification.grading.grade import Grade as Grade, Kind as Kind, grade as grade
from darkroom.pipelines.verification.grading.math_worker import GradingError as GradingError
from darkroom.pipelines.verification.grading.select_grader import grader_of as grader_of
