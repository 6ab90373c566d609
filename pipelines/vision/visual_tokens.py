"""How many tokens an image costs a vision-language model: it is resized first, then cut into patches.

Qwen's rule: both sides become multiples of a token's side (28 pixels for Qwen2.5-VL, 32 for Qwen3-VL), and the area is
brought between the least and the most pixels with the ratio of the sides kept as nearly as that allows.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VisionModel:
    """How a model sees: ``side`` of the square that one token stands for, bounds on an image's pixels."""

    name: str
    side: int
    min_pixels: int = 3_136
    max_pixels: int = 2_000_000
    """Both as PyVision-RL §3.4 has them."""


QWEN2_5_VL = VisionModel("Qwen2.5-VL", 28)
QWEN3_VL = VisionModel("Qwen3-VL", 32)


def resized(width: int, height: int, vision: VisionModel) -> tuple[int, int]:
    """The size at which the model sees an image of ``width`` x ``height`` pixels, both at least 1.

    Qwen's processors refuse a side that is 200 times the other; here it is resized like any other.
    """
    side = vision.side
    wide, high = (round(length / side) * side for length in (width, height))
    if wide * high > vision.max_pixels:
        shrink = math.sqrt(width * height / vision.max_pixels)
        wide, high = (max(side, math.floor(length / shrink / side) * side) for length in (width, height))
    elif wide * high < vision.min_pixels:
        grow = math.sqrt(vision.min_pixels / (width * height))
        wide, high = (math.ceil(length * grow / side) * side for length in (width, height))
    return wide, high


def visual_tokens(width: int, height: int, vision: VisionModel) -> int:
    """The tokens that an image of ``width`` x ``height`` pixels costs."""
    wide, high = resized(width, height, vision)
    return wide * high // vision.side**2
