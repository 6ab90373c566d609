"""Judges: they answer yes or no to a question about a case, in votes."""

from darkroom.pipelines.verification.judges.base import EmbeddedJudge, Judge, JudgeQuestion
from darkroom.pipelines.verification.judges.policy import PolicyJudge

__all__ = ["EmbeddedJudge", "Judge", "JudgeQuestion", "PolicyJudge"]
