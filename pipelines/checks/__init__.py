"""Checks: each looks at one finished rollout and says whether one property holds. A recipe lists the ones it needs."""

from pipelines.checks.answer import answer_judged, answer_matches, answer_verified
from pipelines.checks.base import CheckFunction, Flaw, JudgedCheck, MeasuredCheck, Verdict, check, judged
from pipelines.checks.crop import crop_contains_target, crop_is_tight
from pipelines.checks.execution import executes, shows_an_image
from pipelines.checks.figure import figure_rendered
from pipelines.checks.hint import hint_stays_hidden
from pipelines.checks.output import output_supports_answer, program_computes
from pipelines.checks.solution import solution_stays_hidden

__all__ = [
    "CheckFunction",
    "Flaw",
    "JudgedCheck",
    "MeasuredCheck",
    "Verdict",
    "answer_judged",
    "answer_matches",
    "answer_verified",
    "check",
    "crop_contains_target",
    "crop_is_tight",
    "executes",
    "figure_rendered",
    "hint_stays_hidden",
    "judged",
    "output_supports_answer",
    "program_computes",
    "shows_an_image",
    "solution_stays_hidden",
]
