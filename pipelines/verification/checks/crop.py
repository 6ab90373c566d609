"""Checks on crops, measured on the pixels that came back and not on the code's text. Of a rollout of two crops, only
the last one is checked for showing the target, and little else."""

import math
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from PIL import Image

from darkroom.pipelines.models.parsing import literal_boxes
from darkroom.pipelines.records import ImageRef, Round
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckResult, Flaw, check, decided, failed, passed
from darkroom.pipelines.verification.checks.hint import phrases
from darkroom.pipelines.vision.crop_localization import CropLocation, locate_crop
from darkroom.pipelines.vision.image_transform import side_by_side, trimmed
from darkroom.pipelines.vision.legibility import likeness
from darkroom.pipelines.vision.visibility import candidates, findability
from darkroom.sandbox.neutral import neutralise


def locate_round(case: Case, turn: Round) -> CropLocation | None:
    """The part of the question's image that a round's last image shows; None where it shows none of it."""
    images = turn.observation.images
    return _located(case.store, images[-1], case.trajectory.images[0], _boxes(case, turn)) if images else None


def _boxes(case: Case, turn: Round) -> tuple[Box, ...]:
    return tuple(literal_boxes(executed_code(turn), case.trajectory.images[0].width, case.trajectory.images[0].height))


@lru_cache(maxsize=512)
def _located(store: ImageStore, image: ImageRef, original: ImageRef, boxes: tuple[Box, ...]) -> CropLocation | None:
    """Remembered: several checks of a row ask for the same crop."""
    return locate_crop(store.open(image), store.open(original), boxes)


def _shown_parts(case: Case, turn: Round) -> Iterator[Box]:
    """The parts of the question's image that a round shows, also those side by side on a contact sheet."""
    store, original, boxes = case.store, case.trajectory.images[0], _boxes(case, turn)
    for image in turn.observation.images:
        if (part := _located(store, image, original, boxes)) is not None:
            yield part.box
            continue
        views = map(trimmed, side_by_side(trimmed(store.open(image)), len(boxes)))
        yield from (part.box for view in views if (part := locate_crop(view, store.open(original), boxes)))


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


@check(version=2)
def crop_contains_target(case: Case) -> CheckResult:
    """The last crop shows the whole of the target's box, and there what the image has; ``score``: the share shown."""
    location, target = last_located(case), case.sample.truth.boxes[0].box
    verdict = containment(location, target)
    if location is None or verdict.flaw is not None:
        return verdict
    return shows_pixels(case, case.observed[-1], case.trajectory.images[0], location.box, target) or verdict


@check()
def crop_is_tight(case: Case) -> CheckResult:
    """The last crop is at most ``MAX_CROP_SHARE`` of the image; ``score`` is its share."""
    return tightness(last_located(case), case.trajectory.images[0])


def containment(location: CropLocation | None, target: Box) -> CheckResult:
    """Return whether a crop shows the whole target: not_a_crop, target_cut; ``score`` is the share that it shows."""
    if location is None:
        return failed(Flaw.NOT_A_CROP, "the image shown is no part of the question's image", score=0.0)
    share = round(location.box.intersection(target).area / target.area, 4)
    detail = f"crop {tuple(location.box)}, target {tuple(target)}"
    return decided(shows_whole(location.box, target), Flaw.TARGET_CUT, detail, score=share)


MIN_LIKENESS = 0.3
"""How much the target in a crop must look like the image's (correlation of small copies)."""

PLAIN_LEVELS = 2.0
"""Standard deviation, of 255 grey levels: less is plain."""

_COPY = (32, 32)


def shows_pixels(case: Case, shown: ImageRef, original: ImageRef, crop: Box, target: Box) -> CheckResult | None:
    """The failure shows_nothing of an image that shows ``crop`` of the original, but where the target should be,
    something else; None where it is there. A target that is plain in the original cannot be compared."""
    view, around = case.store.open(shown), target.grown(max(4, target.width // 10, target.height // 10))
    part = around.intersection(crop)
    there = view.convert("L").resize(_COPY, Image.Resampling.BOX, box=sides_in_view(view, crop, part))
    wanted = case.store.open(original).convert("L").resize(_COPY, Image.Resampling.BOX, box=part)
    if np.asarray(wanted).std() < PLAIN_LEVELS or likeness(there, wanted) >= MIN_LIKENESS:
        return None
    return failed(Flaw.SHOWS_NOTHING, f"where the target should be, the crop shows something else: {part}", score=0.0)


def sides_in_view(view: Image.Image, crop: Box, part: Box) -> tuple[float, float, float, float]:
    """Sides of ``part``, in pixels of ``view``, which shows ``crop`` of the image."""
    wide, high = view.width / crop.width, view.height / crop.height
    left, top = crop.x1, crop.y1
    return (part.x1 - left) * wide, (part.y1 - top) * high, (part.x2 - left) * wide, (part.y2 - top) * high


def shows_whole(crop: Box, target: Box) -> bool:
    """Return whether a crop that was searched for shows the whole target, as far as the search can tell."""
    return crop.contains(target, slack=SLACK_PIXELS + max(crop.width, crop.height) // 100)


def tightness(location: CropLocation | None, image: ImageRef) -> CheckResult:
    """Return whether a crop is small enough: not_a_crop, crop_too_large; ``score`` is its share of the image."""
    if location is None:
        return failed(Flaw.NOT_A_CROP, "the image shown is no part of the question's image", score=1.0)
    share = location.box.area / (image.width * image.height)
    return decided(share <= MAX_CROP_SHARE, Flaw.CROP_TOO_LARGE, f"{share:.1%} of the image", score=round(share, 4))


def last_located(case: Case) -> CropLocation | None:
    """The part of the question's image that the last image shows; None where it shows none of it."""
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


@check(version=2)
def place_could_be_known(case: Case) -> CheckResult:
    """Over a dataset, first looks at targets that must be searched for show them no more often than by chance.
    ``score``: 1 for a look that shows the target, less the chance of that."""
    how = findability(case.sample, case.store)
    if how != "searched" or case.sample.truth.boxes[0].image:
        return passed(how or "no target is known")
    image, target, alike = case.trajectory.images[0], case.sample.truth.boxes[0].box, candidates(case.sample)
    size = image.width * image.height
    of_rounds = (list(_shown_parts(case, turn)) for turn in case.trajectory.rounds)
    looks = ([part for part in parts if part.area <= MAX_FIRST_SHARE * size] for parts in of_rounds)
    if not (look := next(filter(None, looks), [])):
        return passed("searched for; no look at a part could be placed")
    shown = [box for box in alike if any(shows_whole(part, box) for part in look)]
    chance = len(shown) / len(alike) if len(alike) > 1 else sum(part.area for part in look) / size
    is_hit = target in shown
    detail = f"the first look shows {len(shown)} of {len(alike)}, {'with' if is_hit else 'without'} the target"
    chance = min(max(chance, 0.001), 0.99) if is_hit else chance  # no hit is a certainty, or a wonder
    return passed(f"searched for; {detail}", score=round(is_hit - chance, 4))


FALSE_ALARMS = 0.001
"""How many honest datasets at most are called beyond chance."""


class FirstLooks(NamedTuple):
    """Rows whose target must be searched for: how many, of which the first look shows it, and by chance would."""

    n: int
    n_hits: int
    by_chance: float

    @property
    def is_beyond_chance(self) -> bool:
        """True if chance gives so many hits in less than ``FALSE_ALARMS`` of all datasets, by Chernoff's bound, which
        holds for rows of different chances (Hoeffding, 1963)."""
        if not self.n or self.n_hits <= self.by_chance:
            return False
        hits, chance = self.n_hits / self.n, self.by_chance / self.n
        misses = (1 - hits) * math.log((1 - hits) / (1 - chance)) if hits < 1 else 0.0
        return self.n * (hits * math.log(hits / chance) + misses) > -math.log(FALSE_ALARMS)


def first_looks(scores: Iterable[float]) -> FirstLooks:
    """Count the scores of ``place_could_be_known``."""
    known = list(scores)
    n_hits = sum(score > 0 for score in known)
    return FirstLooks(len(known), n_hits, n_hits - sum(known))
