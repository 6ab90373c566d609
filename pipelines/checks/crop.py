"""Checks on crops, measured on the pixels that came back and not on the code's text."""

from __future__ import annotations

from pipelines.checks.base import Case
from pipelines.geometry import Box
from pipelines.locate import Located, locate
from pipelines.records import Check, Round

MAX_CROP_SHARE = 0.25
"""A crop that shows more of the image than this has not looked closer."""

SLACK_PIXELS = 2
"""What the search for a crop may be off by on each side, besides a hundredth of the crop's side."""


def crop_contains_target(case: Case) -> Check:
    """The last crop shows the whole of the target's box; ``score`` is the share of the target that it shows."""
    found = _located(case)
    if found is None:
        return Check("crop_contains_target", False, 0.0, "the image shown is no part of the question's image")
    target = case.sample.truth.boxes[0].box
    slack = SLACK_PIXELS + max(found.box.width, found.box.height) // 100
    shown = found.box.intersection(target).area / target.area
    passed = found.box.contains(target, slack=slack)
    return Check("crop_contains_target", passed, round(shown, 4), f"crop {_text(found.box)}, target {_text(target)}")


def crop_is_tight(case: Case) -> Check:
    """The last crop is at most ``MAX_CROP_SHARE`` of the image; ``score`` is its share."""
    found = _located(case)
    if found is None:
        return Check("crop_is_tight", False, 1.0, "the image shown is no part of the question's image")
    image = case.trajectory.images[0]
    share = found.box.area / (image.width * image.height)
    return Check("crop_is_tight", share <= MAX_CROP_SHARE, round(share, 4), f"{share:.1%} of the image")


def _located(case: Case) -> Located | None:
    seen = [turn for turn in case.trajectory.rounds if turn.observation.images]
    if not seen:
        return None
    last = seen[-1]
    original = case.store.open(case.trajectory.images[0])
    return locate(case.store.open(last.observation.images[-1]), original, _executed_code(last))


def _executed_code(turn: Round) -> str:
    """The code as it ran, and below it each box that the sandbox moved into its image, as it was used."""
    code, boxes = turn.code, ""
    for edit in turn.observation.edits:
        if edit.kind == "clamp_box":
            boxes += f"\n{edit.after}"
        elif edit.before:
            code = code.replace(edit.before, edit.after)
    return code + boxes


def _text(box: Box) -> str:
    return f"({box.x1}, {box.y1}, {box.x2}, {box.y2})"
