"""Checks: each looks at one finished rollout and says whether one property holds. A recipe lists the ones it needs."""

from darkroom.pipelines.verification.checks.answer import (
    answer_judged as answer_judged,
    answer_matches as answer_matches,
    answer_verified as answer_verified,
    consistency as consistency,
)
from darkroom.pipelines.verification.checks.anticipation import answer_not_anticipated as answer_not_anticipated
from darkroom.pipelines.verification.checks.check import (
    CheckFunction as CheckFunction,
    CheckResult as CheckResult,
    Flaw as Flaw,
    JudgedCheck as JudgedCheck,
    MeasuredCheck as MeasuredCheck,
    OwnFlaw as OwnFlaw,
    check as check,
    judged as judged,
)
from darkroom.pipelines.verification.checks.claims import claims_hold as claims_hold
from darkroom.pipelines.verification.checks.crop import (
    crop_contains_target as crop_contains_target,
    crop_is_tight as crop_is_tight,
    first_crop_is_generous as first_crop_is_generous,
    first_crop_misses as first_crop_misses,
    place_could_be_known as place_could_be_known,
    second_round_is_explained as second_round_is_explained,
    two_programs as two_programs,
)
from darkroom.pipelines.verification.checks.frames import (
    frames_within_budget as frames_within_budget,
    relevant_frames_shown as relevant_frames_shown,
    visual_tokens_within_budget as visual_tokens_within_budget,
)
from darkroom.pipelines.verification.checks.hint import (
    hint_stays_hidden as hint_stays_hidden,
    judge_leak as judge_leak,
    solution_stays_hidden as solution_stays_hidden,
)
from darkroom.pipelines.verification.checks.image_operations import (
    judge_effective as judge_effective,
    operation_applied as operation_applied,
)
from darkroom.pipelines.verification.checks.necessity import (
    BlindScores as BlindScores,
    Necessity as Necessity,
    blind_scores as blind_scores,
)
from darkroom.pipelines.verification.checks.output import (
    drawing_needed as drawing_needed,
    figure_rendered as figure_rendered,
    output_supports_answer as output_supports_answer,
    program_computes as program_computes,
)
from darkroom.pipelines.verification.checks.rounds import (
    calls_are_valid as calls_are_valid,
    executes as executes,
    has_a_thought as has_a_thought,
    has_tool_turns as has_tool_turns,
    mode_is_obeyed as mode_is_obeyed,
    no_program as no_program,
    no_round_is_broken as no_round_is_broken,
    not_blank as not_blank,
    not_repetitive as not_repetitive,
    not_too_long as not_too_long,
    shows_an_image as shows_an_image,
    zooms_on_target as zooms_on_target,
)

EVERY_FAMILY: tuple[MeasuredCheck, ...] = (
    has_a_thought,
    not_repetitive,
    not_too_long,
    answer_not_anticipated,
    claims_hold,
    not_blank,
    place_could_be_known,
)
"""Checks that a recipe need not list."""
