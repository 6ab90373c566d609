"""Label Studio's rectangles (percent of the image) and ours (pixels): the border between the two frames.

A rectangle value is ``{"x": …, "y": …, "width": …, "height": …, "rotation": …}``: percent 0..100 of the image as the
browser showed it, from its top left corner. Images are stored upright and without EXIF, so that what the browser shows
is what is stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pipelines.geometry import Box

_SLACK = 1e-6
"""Of the longer side: 59.8828125 % of 2,560 is 1,533, not 1,532.9999."""


def to_pixels(value: Mapping[str, Any], original_width: int, original_height: int) -> Box:
    """``(x1, y1, x2, y2)``: the smallest box of whole pixels that covers the rectangle, clipped to the image.

    Raises ``ValueError`` for a rotated rectangle, for one that lies outside of the image or has no extent, and for
    values that are no finite numbers.
    """
    if original_width <= 0 or original_height <= 0:
        raise ValueError(f"an image has a size; found {original_width}x{original_height}")
    if value.get("rotation"):
        raise ValueError(f"the rectangle is rotated by {value['rotation']} degrees; boxes are upright")
    x, y, width, height = (_number(value, name) for name in ("x", "y", "width", "height"))
    if width <= 0 or height <= 0:
        raise ValueError(f"the rectangle has no extent: {width} x {height} percent")
    x1, x2 = _whole(x, x + width, original_width)
    y1, y2 = _whole(y, y + height, original_height)
    box = Box(x1, y1, x2, y2).clipped(original_width, original_height)
    if not box.area or box.width < 0:
        raise ValueError(f"the rectangle at {x}, {y} percent lies outside of the image")
    return box


def to_percent(box: tuple[int, int, int, int], original_width: int, original_height: int) -> dict[str, float]:
    """The rectangle value of a box: the inverse of ``to_pixels``. Raises ``ValueError`` for a box that does not fit."""
    pixels = Box(*box)
    if not pixels.fits(original_width, original_height):
        raise ValueError(f"{tuple(box)} is no box inside {original_width}x{original_height} pixels")
    return {
        "x": 100 * pixels.x1 / original_width,
        "y": 100 * pixels.y1 / original_height,
        "width": 100 * pixels.width / original_width,
        "height": 100 * pixels.height / original_height,
        "rotation": 0,
    }


def share_of(value: Mapping[str, Any]) -> float:
    """The rectangle's share of the image's area, 0..1, as drawn."""
    return _number(value, "width") * _number(value, "height") / 1e4


def largest_square(share: float, width: int, height: int) -> int:
    """The side in pixels of the largest square that covers at most ``share`` of the image."""
    return math.isqrt(int(share * width * height))


def _whole(first: float, last: float, side: int) -> tuple[int, int]:
    """Percent to whole pixels; never empty."""
    slack = _SLACK * side
    start = math.floor(first / 100 * side + slack)
    return start, max(start + 1, math.ceil(last / 100 * side - slack))


def _number(value: Mapping[str, Any], name: str) -> float:
    found = value.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise ValueError(f"the rectangle's {name} is {found!r}, not a finite number")
    return float(found)
