"""Checks: each looks at one finished rollout and says whether one property holds. A recipe lists the ones it needs."""

from pipelines.checks.answer import answer_matches
from pipelines.checks.base import Case, CheckFunction
from pipelines.checks.crop import crop_contains_target, crop_is_tight
from pipelines.checks.execution import executes, shows_an_image
from pipelines.checks.hint import hint_stays_hidden

__all__ = [
    "Case",
    "CheckFunction",
    "answer_matches",
    "crop_contains_target",
    "crop_is_tight",
    "executes",
    "hint_stays_hidden",
    "shows_an_image",
]
