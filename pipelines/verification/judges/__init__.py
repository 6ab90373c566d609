"""Judges: they answer yes or no to a question about a case, in votes."""

from darkroom.pipelines.verification.judges.judge import EmbeddedJudge, Judge, JudgeQuestion, PolicyJudge

__all__ = ["EmbeddedJudge", "Judge", "JudgeQuestion", "PolicyJudge"]
