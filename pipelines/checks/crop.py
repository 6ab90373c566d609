"""Checks on crops, measured on the pixels that came back and not on the code's text."""

from __future__ import annotations

from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed
from pipelines.checks.shown import located
from pipelines.geometry import Box
from pipelines.locate import Located
from pipelines.records import ImageRef

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
    return located(case, seen[-1])


def _text(box: Box) -> str:
    return f"({box.x1}, {box.y1}, {box.x2}, {box.y2})"
