"""Checks: each looks at one finished rollout and says whether one property holds. A recipe lists the ones it needs."""

from pipelines.checks.answer import answer_judged, answer_matches, answer_verified
from pipelines.checks.base import CheckFunction, Flaw, JudgedCheck, MeasuredCheck, Verdict, check, judged
from pipelines.checks.calls import calls_are_valid, mode_is_obeyed, zooms_on_target
from pipelines.checks.consistency import consistency
from pipelines.checks.crop import crop_contains_target, crop_is_tight
from pipelines.checks.effective import judge_effective, operation_applied
from pipelines.checks.execution import executes, no_program, shows_an_image
from pipelines.checks.figure import figure_rendered
from pipelines.checks.frames import frames_within_budget, relevant_frames_shown, visual_tokens_within_budget
from pipelines.checks.hint import hint_stays_hidden
from pipelines.checks.necessity import BlindScores, Necessity, blind_scores
from pipelines.checks.output import output_supports_answer, program_computes
from pipelines.checks.rounds import first_crop_is_generous, first_crop_misses, second_round_is_explained, two_programs
from pipelines.checks.solution import solution_stays_hidden
from pipelines.checks.turns import has_tool_turns, no_round_is_broken

__all__ = [
    "BlindScores",
    "CheckFunction",
    "Flaw",
    "JudgedCheck",
    "MeasuredCheck",
    "Necessity",
    "Verdict",
    "answer_judged",
    "answer_matches",
    "answer_verified",
    "blind_scores",
    "calls_are_valid",
    "check",
    "consistency",
    "crop_contains_target",
    "crop_is_tight",
    "executes",
    "figure_rendered",
    "first_crop_is_generous",
    "first_crop_misses",
    "frames_within_budget",
    "has_tool_turns",
    "hint_stays_hidden",
    "judge_effective",
    "judged",
    "mode_is_obeyed",
    "no_program",
    "no_round_is_broken",
    "operation_applied",
    "output_supports_answer",
    "program_computes",
    "relevant_frames_shown",
    "second_round_is_explained",
    "shows_an_image",
    "solution_stays_hidden",
    "two_programs",
    "visual_tokens_within_budget",
    "zooms_on_target",
]
