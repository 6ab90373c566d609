"""Checks: each looks at one finished rollout and says whether one property holds. A recipe lists the ones it needs."""

from pipelines.checks.answer import answer_judged, answer_matches, answer_verified
from pipelines.checks.base import CheckFunction, Flaw, JudgedCheck, MeasuredCheck, Verdict, check, judged
from pipelines.checks.consistency import consistency
from pipelines.checks.crop import crop_contains_target, crop_is_tight
from pipelines.checks.effective import judge_effective, operation_applied
from pipelines.checks.execution import executes, no_program, shows_an_image
from pipelines.checks.figure import figure_rendered
from pipelines.checks.hint import hint_stays_hidden
from pipelines.checks.necessity import BlindScores, blind_scores, necessity
from pipelines.checks.output import output_supports_answer, program_computes
from pipelines.checks.rounds import first_crop_is_generous, first_crop_misses, second_round_is_explained, two_programs
from pipelines.checks.solution import solution_stays_hidden

__all__ = [
    "BlindScores",
    "CheckFunction",
    "Flaw",
    "JudgedCheck",
    "MeasuredCheck",
    "Verdict",
    "answer_judged",
    "answer_matches",
    "answer_verified",
    "blind_scores",
    "check",
    "consistency",
    "crop_contains_target",
    "crop_is_tight",
    "executes",
    "figure_rendered",
    "first_crop_is_generous",
    "first_crop_misses",
    "hint_stays_hidden",
    "judge_effective",
    "judged",
    "necessity",
    "no_program",
    "operation_applied",
    "output_supports_answer",
    "program_computes",
    "second_round_is_explained",
    "shows_an_image",
    "solution_stays_hidden",
    "two_programs",
]
