"""Checks: each looks at one finished rollout and says whether one property holds. A recipe lists the ones it needs."""

from darkroom.pipelines.verification.checks.answer import answer_judged, answer_matches, answer_verified, consistency
from darkroom.pipelines.verification.checks.anticipation import answer_not_anticipated
from darkroom.pipelines.verification.checks.check import (
    CheckFunction,
    CheckResult,
    Flaw,
    JudgedCheck,
    MeasuredCheck,
    OwnFlaw,
    check,
    judged,
)
from darkroom.pipelines.verification.checks.claims import claims_hold
from darkroom.pipelines.verification.checks.crop import (
    crop_contains_target,
    crop_is_tight,
    first_crop_is_generous,
    first_crop_misses,
    second_round_is_explained,
    two_programs,
)
from darkroom.pipelines.verification.checks.frames import (
    frames_within_budget,
    relevant_frames_shown,
    visual_tokens_within_budget,
)
from darkroom.pipelines.verification.checks.hint import hint_stays_hidden, judge_leak, solution_stays_hidden
from darkroom.pipelines.verification.checks.image_operations import judge_effective, operation_applied
from darkroom.pipelines.verification.checks.necessity import BlindScores, Necessity, blind_scores
from darkroom.pipelines.verification.checks.output import (
    drawing_needed,
    figure_rendered,
    output_supports_answer,
    program_computes,
)
from darkroom.pipelines.verification.checks.rounds import (
    calls_are_valid,
    executes,
    has_a_thought,
    has_tool_turns,
    mode_is_obeyed,
    no_program,
    no_round_is_broken,
    not_repetitive,
    not_too_long,
    shows_an_image,
    zooms_on_target,
)

EVERY_FAMILY: tuple[MeasuredCheck, ...] = (
    has_a_thought,
    not_repetitive,
    not_too_long,
    answer_not_anticipated,
    claims_hold,
)
"""Checks that a recipe need not list."""

__all__ = [
    "EVERY_FAMILY",
    "BlindScores",
    "CheckFunction",
    "CheckResult",
    "Flaw",
    "JudgedCheck",
    "MeasuredCheck",
    "Necessity",
    "OwnFlaw",
    "answer_judged",
    "answer_matches",
    "answer_not_anticipated",
    "answer_verified",
    "blind_scores",
    "calls_are_valid",
    "check",
    "claims_hold",
    "consistency",
    "crop_contains_target",
    "crop_is_tight",
    "drawing_needed",
    "executes",
    "figure_rendered",
    "first_crop_is_generous",
    "first_crop_misses",
    "frames_within_budget",
    "has_a_thought",
    "has_tool_turns",
    "hint_stays_hidden",
    "judge_effective",
    "judge_leak",
    "judged",
    "mode_is_obeyed",
    "no_program",
    "no_round_is_broken",
    "not_repetitive",
    "not_too_long",
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
