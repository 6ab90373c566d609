"""Judges: they answer yes or no to a question about a case, in votes."""

from pipelines.judges.base import EmbeddedJudge, Judge, Question
from pipelines.judges.policy import PolicyJudge

__all__ = ["EmbeddedJudge", "Judge", "PolicyJudge", "Question"]
