"""Checks: each looks at one finished rollout and says whether one property holds. A recipe lists the ones it needs."""

from pipelines.checks.answer import answer_matches
from pipelines.checks.base import CheckFunction, Flaw, JudgedCheck, MeasuredCheck, Verdict, check, judged
from pipelines.checks.calls import calls_are_valid, mode_is_obeyed, zooms_on_target
from pipelines.checks.crop import crop_contains_target, crop_is_tight
from pipelines.checks.execution import executes, shows_an_image
from pipelines.checks.frames import frames_within_budget, relevant_frames_shown, visual_tokens_within_budget
from pipelines.checks.hint import hint_stays_hidden
from pipelines.checks.rounds import has_tool_turns, no_round_is_broken

__all__ = [
    "CheckFunction",
    "Flaw",
    "JudgedCheck",
    "MeasuredCheck",
    "Verdict",
    "answer_matches",
    "calls_are_valid",
    "check",
    "crop_contains_target",
    "crop_is_tight",
    "executes",
    "frames_within_budget",
    "has_tool_turns",
    "hint_stays_hidden",
    "judged",
    "mode_is_obeyed",
    "no_round_is_broken",
    "relevant_frames_shown",
    "shows_an_image",
    "visual_tokens_within_budget",
    "zooms_on_target",
]
