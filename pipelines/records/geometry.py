"""Boxes, and the one border where other coordinate frames become ours; the sizes at which models see images.

Ours: ``(x1, y1, x2, y2)``, integers, pixels of the stored original, top-left origin, right and bottom exclusive.
Angles (elsewhere) are degrees, counter-clockwise, as in PIL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_FARTHEST = 2.0**53
"""Coordinates are compared below this: a float holds every whole number there, and int64 columns hold it."""


class Box(NamedTuple):
    """A rectangle in pixels of the stored original; ``x2`` and ``y2`` lie just outside it."""

    x1: int
    y1: int
    x2: int
    y2: int

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return self.x2 - self.x1

    @property
    def height(self) -> int:
        """Pixels from top to bottom."""
        return self.y2 - self.y1

    @property
    def area(self) -> int:
        """Pixels inside; 0 for an empty or inverted box."""
        return max(0, self.width) * max(0, self.height)

    def contains(self, box: Box, *, slack: int = 0) -> bool:
        """True if ``box`` lies inside, each side allowed to stick out by ``slack`` pixels."""
        grown = self.grown(slack)
        return grown.x1 <= box.x1 and grown.y1 <= box.y1 and grown.x2 >= box.x2 and grown.y2 >= box.y2

    def intersection(self, box: Box) -> Box:
        """The common rectangle; its area is 0 when there is none."""
        return Box(max(self.x1, box.x1), max(self.y1, box.y1), min(self.x2, box.x2), min(self.y2, box.y2))

    def grown(self, pixels: int) -> Box:
        """The same box with every side moved outwards by ``pixels``."""
        return Box(self.x1 - pixels, self.y1 - pixels, self.x2 + pixels, self.y2 + pixels)

    def clipped(self, width: int, height: int) -> Box:
        """The part inside an image of ``width`` x ``height`` pixels."""
        return self.intersection(Box(0, 0, width, height))

    def fits(self, width: int, height: int) -> bool:
        """True if the box is not empty and lies inside an image of ``width`` x ``height`` pixels."""
        return self.area > 0 and Box(0, 0, width, height).contains(self)


def iou(first: Sequence[float], second: Sequence[float]) -> float:
    """Intersection over union, 0..1, of two boxes given by their corners, in one frame, neither empty nor inverted."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return min(1.0, width * height / (sum(areas) - width * height))


def box_from_corners(corners: Sequence[float]) -> Box:
    """Pixel corners ``x1, y1, x2, y2``, possibly fractional: the smallest box that covers them. Raises ``ValueError``
    when there are not four finite numbers or when the corners are inverted."""
    x1, y1, x2, y2 = _corners(corners)
    return Box(math.floor(x1), math.floor(y1), math.ceil(x2), math.ceil(y2))


def box_from_fractions(fractions: Sequence[float], width: int, height: int) -> Box:
    """Corners as fractions 0..1 of an image of ``width`` x ``height`` pixels."""
    x1, y1, x2, y2 = _corners(fractions)
    if not all(0 <= value <= 1 for value in fractions):
        raise ValueError(f"fractions of an image lie in 0..1; found {list(fractions)!r}")
    # 1e-9 keeps 0.1 * 30 = 3.0000000000000004 from growing the box by a pixel
    start = math.floor(x1 * width + 1e-9), math.floor(y1 * height + 1e-9)
    return box_from_corners((*start, math.ceil(x2 * width - 1e-9), math.ceil(y2 * height - 1e-9)))


def box_from_frame(corners: Sequence[float], frame: tuple[int, int], width: int, height: int) -> Box:
    """Pixel corners in an image that was sent as ``frame`` (width, height) and is stored as ``width`` x ``height``."""
    x1, y1, x2, y2 = _corners(corners)
    return box_from_fractions((x1 / frame[0], y1 / frame[1], x2 / frame[0], y2 / frame[1]), width, height)


def _corners(sides: Sequence[float]) -> Sequence[float]:
    if len(sides) != 4 or not all(-_FARTHEST < value < _FARTHEST for value in sides):
        raise ValueError(f"a box needs four finite numbers x1, y1, x2, y2; found {list(sides)!r}")
    x1, y1, x2, y2 = sides
    if x2 <= x1 or y2 <= y1:
        raise ValueError(f"a box needs x1 < x2 and y1 < y2; found {list(sides)!r}")
    return sides


@dataclass(frozen=True, slots=True)
class PixelLimits:
    """Area limits of an image in pixels, applied as Qwen2-VL's ``smart_resize`` does (transformers)."""

    minimum: int | None = None
    maximum: int | None = None
    step: int = 1

    def fit(self, width: int, height: int) -> tuple[int, int]:
        """The size to send: sides near multiples of ``step``, the area within the limits, the aspect ratio kept. Qwen's
        processors refuse a side that is 200 times the other; here it is resized like any other."""
        step = self.step

        def multiple(side: float, rounded: Callable[[float], int]) -> int:
            return max(step, rounded(side / step) * step)

        area = round(width / step) * round(height / step) * step**2
        if self.maximum is not None and area > self.maximum:
            shrink = math.sqrt(width * height / self.maximum)
            return multiple(width / shrink, math.floor), multiple(height / shrink, math.floor)
        if self.minimum is not None and area < self.minimum:
            grow = math.sqrt(self.minimum / (width * height))
            return multiple(width * grow, math.ceil), multiple(height * grow, math.ceil)
        return multiple(width, round), multiple(height, round)
