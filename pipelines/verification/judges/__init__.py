"""Judges: they answer yes or no to a question about a case, in votes."""

from darkroom.pipelines.verification.judges.judge import (
    EmbeddedJudge as EmbeddedJudge,
    Judge as Judge,
    JudgeQuestion as JudgeQuestion,
    PolicyJudge as PolicyJudge,
)
