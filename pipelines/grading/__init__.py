"""Grading: whether a model's free words give a sample's answer, however they spell it, and by which rule.

    from pipelines.grading import grade

    grade(r"\\boxed{2\\sqrt{3}}", sample)    # Grade(right=True, kind="maths", detail="…")

``pipelines.answers`` compares spellings only; this package also knows units, roundings, expressions and letters lost by
an OCR reader. It accepts nothing that hedges, negates or lists.
"""

from pipelines.grading.base import Grade, Kind
from pipelines.grading.grade import grade
from pipelines.grading.process import GradingFault

__all__ = ["Grade", "GradingFault", "Kind", "grade"]
