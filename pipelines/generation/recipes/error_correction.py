"""Error correction: a first crop that misses the target, then the right one, with the reason why (Thyme App. B). The
wrong region is seeded, inside the image, near the target or elsewhere, and shows nothing of it (``two_crops``)."""

import random
from pathlib import Path

from darkroom.pipelines.generation.recipes import two_crops
from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.verification.checks import first_crop_misses

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
"""Text beside the first observation; here, so that the recipe's digest covers it."""


def first_region(exact: Box, sample: Sample, rng: random.Random) -> Box:
    return wrong(exact, sample.truth.boxes[0].box, sample.images[0].width, sample.images[0].height, rng)


def wrong(exact: Box, target: Box, width: int, height: int, rng: random.Random) -> Box:
    """A region of the image that does not touch ``target``. Raises ``RowError`` (unsuitable) where there is no room."""
    wide, high = (
        min(max(MIN_SIDE, round(side * rng.uniform(*STRETCH))), most)
        for side, most in ((exact.width, width), (exact.height, height))
    )
    near = rng.random() < 0.5
    for _ in range(_TRIES):
        x, y = (
            _beside(target, wide, high, rng) if near else (rng.randint(0, width - wide), rng.randint(0, height - high))
        )
        region = Box(x, y, x + wide, y + high)
        if region.fits(width, height) and not region.intersection(target.grown(CLEARANCE)).area:
            return region
    raise RowError(Reason.UNSUITABLE, f"a {width}x{height} image has no room for a crop that misses {target}")


def _beside(target: Box, wide: int, high: int, rng: random.Random) -> tuple[int, int]:
    """A left upper corner to the left, right, above or below the target, and a little aside."""
    side, gap = rng.randrange(4), rng.uniform(*NEAR)
    aside = rng.uniform(-0.5, 0.5)
    x, y = (target.x1 + target.x2 - wide) / 2, (target.y1 + target.y2 - high) / 2
    if side < 2:
        away = (wide + target.width) / 2 + gap * wide
        return round(x - away if side else x + away), round(y + aside * high)
    away = (high + target.height) / 2 + gap * high
    return round(x + aside * wide), round(y - away if side == 2 else y + away)


recipe = two_crops(
    "error_correction",
    description="Two rounds: a crop that misses, then the right one, with the reason (Thyme App. B, multi-round).",
    file=Path(__file__),
    first_region=first_region,
    first_check=first_crop_misses,
    follow_up=NEXT,
    also="as for `crop`; the image has room for a crop that misses",
)
