"""Grading: whether a model's free words give a sample's answer, however they spell it, and by which rule.

    from pipelines.grading import grade, grader_of

    grade(r"\\boxed{2\\sqrt{3}}", sample)                       # Grade(right=True, kind="maths", detail="…")
    grade("red, blue and green", sample, grader_of(sample))    # by that grader's rule alone

``pipelines.answers`` compares spellings only; this package also knows units, roundings, expressions, lists, boxes and
letters lost by an OCR reader. It accepts nothing that hedges, negates or lists what was not asked for. Whether a grader
tells right from wrong is tried on corrupted answers (``tells_apart``). ``judged.py`` asks a judge about free text.
"""

from pipelines.grading.apart import ToldApart, require_apart, tells_apart
from pipelines.grading.base import Grade, Kind
from pipelines.grading.corrupted import Corruption, corruptions
from pipelines.grading.grade import grade
from pipelines.grading.graders import grader_of
from pipelines.grading.process import GradingFault

__all__ = [
    "Corruption",
    "Grade",
    "GradingFault",
    "Kind",
    "ToldApart",
    "corruptions",
    "grade",
    "grader_of",
    "require_apart",
    "tells_apart",
]
