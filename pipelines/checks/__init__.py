"""Checks: each looks at one finished rollout and says whether one property holds. A recipe lists the ones it needs."""

from pipelines.checks.answer import answer_matches
from pipelines.checks.base import CheckFunction, Flaw, JudgedCheck, MeasuredCheck, Verdict, check, judged
from pipelines.checks.consistency import consistency
from pipelines.checks.crop import crop_contains_target, crop_is_tight
from pipelines.checks.effective import judge_effective, operation_applied
from pipelines.checks.execution import executes, no_program, shows_an_image
from pipelines.checks.hint import hint_stays_hidden

__all__ = [
    "CheckFunction",
    "Flaw",
    "JudgedCheck",
    "MeasuredCheck",
    "Verdict",
    "answer_matches",
    "check",
    "consistency",
    "crop_contains_target",
    "crop_is_tight",
    "executes",
    "hint_stays_hidden",
    "judge_effective",
    "judged",
    "no_program",
    "operation_applied",
    "shows_an_image",
]
