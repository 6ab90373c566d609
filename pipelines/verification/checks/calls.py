"""Checks on calls of the crop tool (Look Less, Reason More, §4.1 and appendix B): how they are made, what they show."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from darkroom.pipelines.models.protocols.tools import CROP, write_call
from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.records.geometry import Box, box_from_fractions
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.base import CheckResult, Flaw, check, decided, failed, passed
from darkroom.pipelines.verification.checks.crop import containment, tightness
from darkroom.pipelines.vision.crop_localization import locate_crop


@dataclass(frozen=True, slots=True)
class CropCall:
    """A call of the tool: ``sides`` are fractions, ``target`` counts images from 1, ``shown`` is what came back."""

    sides: tuple[float, ...]
    target: int
    shown: tuple[ImageRef, ...]


@check()
def calls_are_valid(case: Case) -> CheckResult:
    """Every round is a crop call whose box is ordered, lies in 0..1 and names an image that there was."""
    n_images = len(case.trajectory.images)
    for n, call in enumerate(_calls(case), 1):
        if call is None:
            return failed(Flaw.CALL_INVALID, f"round {n} is no call of {CROP}")
        if error := _error(call, n_images):
            return failed(Flaw.CALL_INVALID, f"round {n}: {error}")
        n_images += len(call.shown)
    return passed(f"{len(case.trajectory.rounds)} calls")


@check()
def zooms_on_target(case: Case) -> CheckResult:
    """What the last call shows contains the target's box and is no lazy crop, measured on pixels; ``score`` is the
    share of the target that it shows. A row without calls, or without a box, has nothing to show."""
    calls = [call for call in _calls(case) if call is not None]
    if not calls or not case.sample.truth.boxes:
        return passed("no call" if not calls else "the sample has no box")
    if not calls[-1].shown:
        return failed(Flaw.NOT_A_CROP, "the last call shows nothing", score=0.0)
    target = case.sample.truth.boxes[0]
    original = case.trajectory.images[target.image]
    image = case.store.open(calls[-1].shown[-1])
    location = locate_crop(image, case.store.open(original), _call_boxes(calls[-1], original, target.image))
    contained, tight = containment(location, target.box), tightness(location, original)
    return contained if contained.flaw or not tight.flaw else tight


@check()
def mode_is_obeyed(case: Case) -> CheckResult:
    """Forced rows call, forbidden rows don't, free ones do what the row was chosen for; ``score`` counts calls."""
    n_calls, mode = len(case.trajectory.rounds), case.trajectory.mode
    chosen = case.hint.get("style")
    calls_wanted = mode == "forced" or (mode == "free" and chosen == "tool")
    none_wanted = mode == "forbidden" or (mode == "free" and chosen == "text")
    detail = f"{n_calls} calls in the mode {mode}" + (f", chosen for {chosen}" if mode == "free" and chosen else "")
    obeyed = not (calls_wanted and not n_calls) and not (none_wanted and n_calls)
    return decided(obeyed, Flaw.MODE_VIOLATED, detail, score=float(n_calls))


def _calls(case: Case) -> Iterator[CropCall | None]:
    """The call that each round's code is; None for any other program."""
    for turn in case.trajectory.rounds:
        call = json.loads(write_call(turn.code))
        if call["name"] != CROP:
            yield None
            continue
        arguments = call["arguments"]
        yield CropCall(tuple(arguments["bbox_2d"]), arguments["target_image"], turn.observation.images)


def _error(call: CropCall, n_images: int) -> str:
    x1, y1, x2, y2 = call.sides
    if not all(0 <= side <= 1 for side in call.sides):
        return f"the box {list(call.sides)} is not in 0..1"
    if x1 >= x2 or y1 >= y2:
        return f"the box {list(call.sides)} is not ordered"
    if not 1 <= call.target <= n_images:
        return f"there is no image {call.target}, there are {n_images}"
    return ""


def _call_boxes(call: CropCall, original: ImageRef, index: int) -> list[Box]:
    """The box of a call on the original, in pixels: where to look first. Pixels decide."""
    if call.target != index + 1 or _error(call, call.target):
        return []
    return [box_from_fractions(call.sides, original.width, original.height)]
