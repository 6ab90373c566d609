"""Error correction: a first crop that misses the target, then the right one, with the reason why (Thyme App. B).

The wrong region is seeded: inside the image, near the target or elsewhere, and it shows nothing of it. The policy is
told it at the start and the right one beside the first observation; the trajectory shows neither.
"""

from __future__ import annotations

import random
from pathlib import Path

from pipelines.checks import (
    answer_matches,
    crop_contains_target,
    crop_is_tight,
    executes,
    first_crop_misses,
    hint_stays_hidden,
    second_round_is_explained,
    shows_an_image,
    two_programs,
)
from pipelines.closeups import as_text, closeup, closing_of, crop_program, from_text, label_of, place_of, seen_in
from pipelines.digest import seed_from
from pipelines.geometry import Box
from pipelines.images import ImageStore
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import Thyme
from pipelines.recipes.base import Recipe
from pipelines.records import Round, Sample
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared, Task

STRETCH = (1.0, 1.8)
"""How large the wrong region is, as a multiple of the exact region's sides."""

NEAR = (0.2, 1.5)
"""How far beside the target a near miss lies, in sides of the wrong region; half of all misses are near."""

CLEARANCE = 4
"""Pixels between the wrong region and the target."""

MIN_SIDE = 64
_TRIES = 100
NEXT = (
    "Say what this crop shows and why the region must change, then write the second program.\n"
    "Region for the second program, in the original image (left, upper, right, lower): {region}"
)
"""What the policy is told beside the first observation; here, so that the recipe's digest covers it."""


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The image as it is; the wrong and the exact region as the hint."""
    exact = closeup(sample)
    draw = random.Random(seed_from("error_correction", sample.sample_id))
    first = wrong(exact, sample.truth.boxes[0].box, sample.images[0].width, sample.images[0].height, draw)
    return Prepared(sample.images, {"first_region": as_text(first), "region": as_text(exact)})


def wrong(exact: Box, target: Box, width: int, height: int, draw: random.Random) -> Box:
    """A region inside the image that does not touch ``target``, near it or elsewhere.

    Raises ``RowFault`` (unsuitable) where the image leaves no room for one.
    """
    wide, high = (
        min(max(MIN_SIDE, round(side * draw.uniform(*STRETCH))), most)
        for side, most in ((exact.width, width), (exact.height, height))
    )
    near = draw.random() < 0.5
    for _ in range(_TRIES):
        x, y = (
            _beside(target, wide, high, draw)
            if near
            else (draw.randint(0, width - wide), draw.randint(0, height - high))
        )
        region = Box(x, y, x + wide, y + high)
        if region.fits(width, height) and not region.intersection(target.grown(CLEARANCE)).area:
            return region
    raise RowFault(Reason.UNSUITABLE, f"a {width}x{height} image has no room for a crop that misses {target}")


def _beside(target: Box, wide: int, high: int, draw: random.Random) -> tuple[int, int]:
    """A left upper corner to the left, right, above or below the target, and a little aside."""
    side, gap = draw.randrange(4), draw.uniform(*NEAR)
    aside = draw.uniform(-0.5, 0.5)
    x, y = (target.x1 + target.x2 - wide) / 2, (target.y1 + target.y2 - high) / 2
    if side < 2:
        away = (wide + target.width) / 2 + gap * wide
        return round(x - away if side else x + away), round(y + aside * high)
    away = (high + target.height) / 2 + gap * high
    return round(x + aside * wide), round(y - away if side == 2 else y + away)


def follow_up(task: Task, rounds: tuple[Round, ...]) -> str:
    """The exact region, beside the first observation."""
    return NEXT.format(region=task.hint["region"]) if len(rounds) == 1 else ""


def script(turn: Turn) -> str:
    """The oracle: the wrong crop, the right one, the answer."""
    return (_first, _second, _answer)[min(len(turn.rounds), 2)](turn)


def _first(turn: Turn) -> str:
    sample, draw = turn.task.sample, random.Random(turn.task.seed)
    region = from_text(turn.task.hint["first_region"])
    slots = {"label": label_of(sample), "place": place_of(region, sample)}
    thought = f"{draw.choice(_WHY)} {draw.choice(_BELIEF)}".format(**slots)
    return Thyme().write_round(thought, crop_program(region, label="part in question", draw=draw), first=True)


def _second(turn: Turn) -> str:
    sample, draw = turn.task.sample, random.Random(turn.seed)
    first, region = (from_text(turn.task.hint[name]) for name in ("first_region", "region"))
    seen = _seen(turn, first, draw)
    slots = {"label": label_of(sample), "way": _way(first, region), "place": place_of(region, sample)}
    thought = f"{seen} {draw.choice(_INSTEAD)}".format(**slots)
    return Thyme().write_round(thought, crop_program(region, label=label_of(sample), draw=draw), first=False)


def _seen(turn: Turn, first: Box, draw: random.Random) -> str:
    """What the first round really gave: nothing, another thing of the kind, or none of that kind."""
    if not turn.rounds[0].observation.images:
        return "That gave no picture at all."
    others = (other.box for other in turn.task.sample.truth.boxes[1:])
    return draw.choice(_ANOTHER if any(first.intersection(other).area for other in others) else _MISSED)


def _way(first: Box, region: Box) -> str:
    """In which direction one has to look instead, seen from the middle of the first region."""
    across, down = (region.x1 + region.x2 - first.x1 - first.x2) / 2, (region.y1 + region.y2 - first.y1 - first.y2) / 2
    column = ("left" if across < 0 else "right") if abs(across) > abs(down) / 2 else ""
    row = ("up" if down < 0 else "down") if abs(down) > abs(across) / 2 else ""
    return f"further {row} and to the {column}" if row and column else f"further {row or f'to the {column}'}"


def _answer(turn: Turn) -> str:
    sample, draw = turn.task.sample, random.Random(turn.seed)
    shows = draw.choice(_SHOWS).format(label=label_of(sample), seen=seen_in(sample))
    return Thyme().write_answer(f"{shows}{closing_of(sample)}", sample.answer, first=False)


_WHY = (
    "The question is about the {label}, which is far too small to be read in the full picture.",
    "I need a closer look at the {label}; at this size it is only a speck.",
    "The {label} is one small detail among many here.",
)
_BELIEF = (
    "I take it to be near the {place}, so I crop there and enlarge the crop.",
    "My impression is that it is somewhere at the {place}. I will zoom in on that.",
    "It seems to be around the {place}; let me look at that part first.",
)
_MISSED = (
    "This crop does not show the {label}: I looked at the wrong spot.",
    "The {label} is not in this view, so my first guess of its place was off.",
    "What came back is another part of the picture; the {label} is nowhere in it.",
)
_ANOTHER = (
    "This is not the {label} that the question is about, only another thing of its kind.",
    "What came back shows something similar, but it belongs to another part of the picture.",
)
_INSTEAD = (
    "Compared with the whole picture it has to lie {way}, near the {place}. I move the region there.",
    "Looking at the picture again, the {label} I want is {way}. I correct the crop accordingly.",
    "The region has to move: the right place is {way}, at the {place}.",
)
_SHOWS = (
    "The corrected crop shows the {label}: {seen}.",
    "Now the {label} is in view, and it can be read: {seen}.",
    "This is the right spot. The {label} is clear now: {seen}.",
)

recipe = Recipe(
    family="error_correction",
    description="Two rounds: a crop that misses, then the right one, with the reason (Thyme App. B, multi-round).",
    file=Path(__file__),
    prompt=bundled_prompt("error_correction"),
    protocol=Thyme(),
    prepare=prepare,
    script=script,
    checks=(
        executes,
        two_programs,
        shows_an_image,
        first_crop_misses,
        crop_contains_target,
        crop_is_tight,
        second_round_is_explained,
        answer_matches,
        hint_stays_hidden,
    ),
    max_rounds=2,
    follow_up=follow_up,
)
