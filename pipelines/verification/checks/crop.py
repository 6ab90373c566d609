"""Checks on crops, measured on the pixels that came back and not on the code's text. Of a rollout of two crops, only
the last one is checked for showing the target, and little else."""

from difflib import SequenceMatcher
from functools import lru_cache

from darkroom.pipelines.models.parsing import literal_boxes
from darkroom.pipelines.records import ImageRef, Round
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, check, decided, failed, passed
from darkroom.pipelines.verification.checks.hint import phrases
from darkroom.pipelines.vision.crop_localization import CropLocation, locate_crop
from darkroom.sandbox.neutral import neutralise


def locate_round(case: Case, turn: Round) -> CropLocation | None:
    """The part of the question's image that a round's last image shows; None where it shows none of it."""
    if not turn.observation.images:
        return None
    boxes = tuple(literal_boxes(executed_code(turn)))
    return _located(case.store, turn.observation.images[-1], case.trajectory.images[0], boxes)


@lru_cache(maxsize=512)
def _located(store: ImageStore, image: ImageRef, original: ImageRef, boxes: tuple[Box, ...]) -> CropLocation | None:
    """Remembered: several checks of a row ask for the same crop."""
    return locate_crop(store.open(image), store.open(original), boxes)


def executed_code(turn: Round) -> str:
    """The code as it ran, and below it each box that the sandbox moved into its image, as it was used."""
    code = turn.code
    boxes = ""
    for edit in turn.observation.edits:
        if edit.kind == "clamp_box":
            boxes += f"\n{edit.after}"
        elif edit.before and not edit.kind.startswith("tool call"):  # that one is how the model spelled the code's call
            code = neutralise(code).replace(edit.before, edit.after)
    return code + boxes


MAX_CROP_SHARE = 0.25
"""A crop that shows more of the image than this has not looked closer."""

SLACK_PIXELS = 2
"""What the search for a crop may be off by on each side, besides a hundredth of the crop's side."""


@check()
def crop_contains_target(case: Case) -> CheckResult:
    """The last crop shows the whole of the target's box; ``score`` is the share of the target that it shows."""
    return containment(_last_located(case), case.sample.truth.boxes[0].box)


@check()
def crop_is_tight(case: Case) -> CheckResult:
    """The last crop is at most ``MAX_CROP_SHARE`` of the image; ``score`` is its share."""
    return tightness(_last_located(case), case.trajectory.images[0])


def containment(location: CropLocation | None, target: Box) -> CheckResult:
    """Return whether a crop shows the whole target: not_a_crop, target_cut; ``score`` is the share that it shows."""
    if location is None:
        return failed(Flaw.NOT_A_CROP, "the image shown is no part of the question's image", score=0.0)
    share = round(location.box.intersection(target).area / target.area, 4)
    detail = f"crop {tuple(location.box)}, target {tuple(target)}"
    return decided(shows_whole(location.box, target), Flaw.TARGET_CUT, detail, score=share)


def shows_whole(crop: Box, target: Box) -> bool:
    """Return whether a crop that was searched for shows the whole target, as far as the search can tell."""
    return crop.contains(target, slack=SLACK_PIXELS + max(crop.width, crop.height) // 100)


def tightness(location: CropLocation | None, image: ImageRef) -> CheckResult:
    """Return whether a crop is small enough: not_a_crop, crop_too_large; ``score`` is its share of the image."""
    if location is None:
        return failed(Flaw.NOT_A_CROP, "the image shown is no part of the question's image", score=1.0)
    share = location.box.area / (image.width * image.height)
    return decided(share <= MAX_CROP_SHARE, Flaw.CROP_TOO_LARGE, f"{share:.1%} of the image", score=round(share, 4))


def _last_located(case: Case) -> CropLocation | None:
    rounds = [turn for turn in case.trajectory.rounds if turn.observation.images]
    return locate_round(case, rounds[-1]) if rounds else None


MIN_NARROWING = 1.5
"""A first crop is generous when it shows at least this many times the area of the second."""

MAX_FIRST_SHARE = 0.6
"""A first crop that shows more of the image than this has not looked closer at all."""

MAX_MISSED_SHARE = 0.3
"""A first crop that shows more of the target than this was not wrong."""

MAX_REPETITION = 0.9
"""Thoughts that are more alike than this say the same."""

_MIN_WORDS = 6


@check()
def two_programs(case: Case) -> CheckResult:
    """There are exactly two programs; ``score`` is their number."""
    if (n := len(case.trajectory.rounds)) == 2:
        return passed(score=2.0)
    return failed(Flaw.TOO_FEW_ROUNDS if n < 2 else Flaw.TOO_MANY_PROGRAMS, f"{n} programs, expected 2", score=float(n))


@check()
def first_crop_is_generous(case: Case) -> CheckResult:
    """The first crop shows the whole target and clearly more than the second; ``score`` is the ratio of their areas."""
    rounds = case.trajectory.rounds[:2]
    first, second = (locate_round(case, turn) for turn in rounds) if len(rounds) == 2 else (None, None)
    if first is None or second is None:
        which = "first" if first is None else "second"
        return failed(Flaw.NOT_A_CROP, f"the {which} image is no part of the question's image", score=0.0)
    image, target = case.trajectory.images[0], case.sample.truth.boxes[0].box
    share, narrowing = first.box.area / (image.width * image.height), first.box.area / second.box.area
    detail, score = f"{narrowing:.1f} times the second crop, {share:.1%} of the image", round(narrowing, 4)
    if not shows_whole(first.box, target):
        return failed(Flaw.TARGET_CUT, f"the first crop does not show the whole target; {detail}", score=score)
    if share > MAX_FIRST_SHARE:
        return failed(Flaw.CROP_TOO_LARGE, detail, score=score)
    return decided(narrowing >= MIN_NARROWING, Flaw.CROP_TOO_SMALL, detail, score=score)


@check()
def first_crop_misses(case: Case) -> CheckResult:
    """The first crop shows at most ``MAX_MISSED_SHARE`` of the target; ``score`` is the share that it shows."""
    rounds = case.trajectory.rounds
    if (location := locate_round(case, rounds[0]) if rounds else None) is None:
        return failed(Flaw.NOT_A_CROP, "the first image is no part of the question's image", score=0.0)
    target = case.sample.truth.boxes[0].box
    share = round(location.box.intersection(target).area / target.area, 4)
    detail = f"the first crop shows {share:.0%} of the target"
    return decided(share <= MAX_MISSED_SHARE, Flaw.TARGET_SHOWN_TOO_EARLY, detail, score=share)


@check()
def second_round_is_explained(case: Case) -> CheckResult:
    """The thought before the second program says something new, and nothing of a plan; ``score``: how new, 0..1."""
    if len(case.trajectory.rounds) < 2:
        return failed(Flaw.NOT_EXPLAINED, "there is no second round", score=0.0)
    first, second = (turn.thought for turn in case.trajectory.rounds[:2])
    new = round(1 - SequenceMatcher(None, first.casefold(), second.casefold(), autojunk=False).ratio(), 4)
    if len(second.split()) < _MIN_WORDS:
        return failed(Flaw.NOT_EXPLAINED, f"nothing is said of the first result: {second!r}", score=0.0)
    if 1 - new > MAX_REPETITION:
        return failed(Flaw.NOT_EXPLAINED, "it repeats the thought of round 1", score=new)
    if mention := phrases("planned").search(second):
        return failed(Flaw.HINT_MENTIONED, f"the thought of round 2 says {mention[0]!r}", score=new)
    return passed(score=new)
