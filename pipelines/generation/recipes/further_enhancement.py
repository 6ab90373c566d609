"""Further enhancement: a generous crop first, then the exact one, explained by what the first showed (Thyme App. B).

The first region is seeded: it holds the whole target, is several times as large as the exact region, and is never the
whole image (``two_crops``).
"""

import math
import random
from pathlib import Path

from darkroom.pipelines.generation.recipes import two_crops
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.verification.checks import first_crop_is_generous

GENEROSITY = (4.0, 10.0)
"""How many times the exact region's area the first region has."""

MIN_GENEROSITY = 2.0
"""What is left of it at the image's borders; less is no generous region."""

MAX_SHARE = 0.5
"""The first region is at most this share of the image."""

NEXT = (
    "Say what this crop shows and why it has to be closer, then write the second program.\n"
    "Region for the second program, in the original image (left, upper, right, lower): {region}"
)
"""Text beside the first observation; here, so that the recipe's digest covers it."""


def generous(exact: Box, width: int, height: int, rng: random.Random) -> Box:
    """A region around ``exact`` with ``GENEROSITY`` times its area, placed by chance, inside the image. Raises
    ``RowError`` (unsuitable) where the image leaves no room for ``MIN_GENEROSITY``."""
    side = math.sqrt(rng.uniform(*GENEROSITY))
    most = math.sqrt(MAX_SHARE)
    wide = min(round(exact.width * side), int(width * most))
    high = min(round(exact.height * side), int(height * most))
    if wide < exact.width or high < exact.height or wide * high < MIN_GENEROSITY * exact.area:
        evidence = f"a {width}x{height} image has no room for a generous crop around {tuple(exact)}"
        raise RowError(Reason.UNSUITABLE, evidence)
    x = rng.randint(max(0, exact.x2 - wide), min(exact.x1, width - wide))
    y = rng.randint(max(0, exact.y2 - high), min(exact.y1, height - high))
    return Box(x, y, x + wide, y + high)


recipe = two_crops(
    "further_enhancement",
    description="Two rounds: a generous crop, then the exact one, explained by the first (Thyme App. B, multi-round).",
    file=Path(__file__),
    first_region=lambda exact, sample, rng: generous(exact, sample.images[0].width, sample.images[0].height, rng),
    first_check=first_crop_is_generous,
    follow_up=NEXT,
    also="as for `crop`; the image has room for a generous crop",
)
