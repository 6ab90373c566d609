"""Checks on crops, measured on the pixels that came back and not on the code's text."""

from __future__ import annotations

from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed
from pipelines.geometry import Box
from pipelines.locate import Located, locate
from pipelines.records import ImageRef, Round

MAX_CROP_SHARE = 0.25
"""A crop that shows more of the image than this has not looked closer."""

SLACK_PIXELS = 2
"""What the search for a crop may be off by on each side, besides a hundredth of the crop's side."""


@check()
def crop_contains_target(case: Case) -> Verdict:
    """The last crop shows the whole of the target's box; ``score`` is the share of the target that it shows."""
    return containment(_located(case), case.sample.truth.boxes[0].box)


@check()
def crop_is_tight(case: Case) -> Verdict:
    """The last crop is at most ``MAX_CROP_SHARE`` of the image; ``score`` is its share."""
    return tightness(_located(case), case.trajectory.images[0])


def containment(found: Located | None, target: Box) -> Verdict:
    """Whether a crop shows the whole target: not_a_crop, target_cut; ``score`` is the share of it that it shows."""
    if found is None:
        return failed(Flaw.NOT_A_CROP, "the image shown is no part of the question's image", score=0.0)
    slack = SLACK_PIXELS + max(found.box.width, found.box.height) // 100
    shown = round(found.box.intersection(target).area / target.area, 4)
    detail = f"crop {_text(found.box)}, target {_text(target)}"
    if found.box.contains(target, slack=slack):
        return passed(detail, score=shown)
    return failed(Flaw.TARGET_CUT, detail, score=shown)


def tightness(found: Located | None, image: ImageRef) -> Verdict:
    """Whether a crop is small enough: not_a_crop, crop_too_large; ``score`` is its share of the image."""
    if found is None:
        return failed(Flaw.NOT_A_CROP, "the image shown is no part of the question's image", score=1.0)
    share = found.box.area / (image.width * image.height)
    detail = f"{share:.1%} of the image"
    if share <= MAX_CROP_SHARE:
        return passed(detail, score=round(share, 4))
    return failed(Flaw.CROP_TOO_LARGE, detail, score=round(share, 4))


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
