"""Corrupted answers: for every kind of answer, texts that look like it and are wrong.

    from pipelines.grading.corrupted import corruptions

    for corruption in corruptions(sample, grader):
        print(corruption.kind, corruption.text)

They are deterministic. What would be right after all (a digit changed within the tolerance) is not among them.
"""

from pipelines.grading.corrupted.base import Corruption
from pipelines.grading.corrupted.every import corruptions

__all__ = ["Corruption", "corruptions"]
