"""Two images in one frame, compared place by place: where one of the two has details, do the other's correlate?"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.selection.duplicates.local_features import Gray
from darkroom.pipelines.vision.registration import Matrix, details, laid_over

Mask = NDArray[np.bool_]

_HOPELESS_OVERLAP = 0.5
"""Below, the pixels are not looked at: refining a frame changes the overlap by 0.01 at most (tuning set)."""
_SPECK = 0.004
_DOT = 0.25
"""Of a window."""
_SMALLEST_BOX, _LARGEST_BOX, _FILLED = 0.02, 0.25, 0.4
"""Of the image, and of the box. Boxes of captions have up to 0.2 of the image and are filled to 0.5 and more; those of
forms to at most 0.25, of charts to 0.3 (cases written before)."""
_PLAIN = 0.2
"""Of one's variance, the other's: below, the other is plain there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Scale of details: between two blurs of ``sigmas``, with a ``variance`` (squared grey levels) in a ``window``, in
    pixels. They agree when their correlation, whatever their brightness, is above ``alike``. On every side a share
    ``margin`` is left out: a turn by two degrees leaves its corners there."""

    sigmas: tuple[float, float]
    window: int
    variance: float
    alike: float
    margin: float = 0.06


@dataclass(frozen=True, slots=True)
class Overlaid:
    """``beside`` in ``gray``'s frame; ``inside``: what both show, without its edge; ``overlap``: its share of both."""

    gray: Gray
    beside: Gray
    inside: Mask
    overlap: float

    @classmethod
    def by(cls, matrix: Matrix, gray: Gray, beside: Gray) -> "Overlaid | None":
        """None where the two share less than half of what they show."""
        overlay = laid_over(beside, matrix, gray.shape[::-1], border=cv2.BORDER_REPLICATE)
        inside = overlay.coverage == 255
        of_gray = float(inside.mean())
        of_beside = min(1.0, float(inside.sum() * abs(np.linalg.det(matrix[:, :2])) / beside.size))
        overlap = 1 / (1 / of_gray + 1 / of_beside - 1) if min(of_gray, of_beside) > 0 else 0.0
        eroded = np.asarray(cv2.erode(inside.astype(np.uint8), np.ones((7, 7), np.uint8)) > 0)
        return None if overlap < _HOPELESS_OVERLAP else cls(gray, overlay.pixels, eroded, overlap)

    def without(self, mask: Mask) -> "Overlaid":
        """The same two with ``mask`` filled from around it, in each from its own, and not compared."""
        if not mask.any():
            return self
        filled = mask.astype(np.uint8)
        gray, beside = (cv2.inpaint(side, filled, 3, cv2.INPAINT_TELEA) for side in (self.gray, self.beside))
        return Overlaid(np.asarray(gray, np.uint8), np.asarray(beside, np.uint8), self.inside & ~mask, self.overlap)

    def places(self, scale: Scale) -> "ComparedPlaces":
        """The two compared around every place, where one of them has details."""
        levels, levels_beside = (details(side, *scale.sigmas) for side in (self.gray, self.beside))
        window = (scale.window, scale.window)
        own = np.asarray(cv2.boxFilter(levels * levels, -1, window), np.float32)
        of_beside = np.asarray(cv2.boxFilter(levels_beside * levels_beside, -1, window), np.float32)
        both = cv2.boxFilter(levels * levels_beside, -1, window)
        energy, least = np.maximum(own, of_beside), np.minimum(own, of_beside)
        margin_y, margin_x = (round(side * scale.margin) for side in self.inside.shape)
        inner = np.zeros_like(self.inside)
        inner[margin_y : len(inner) - margin_y, margin_x : inner.shape[1] - margin_x] = True
        inner &= self.inside
        detailed = (energy > scale.variance) & inner
        agreeing = detailed & (both > scale.alike * np.sqrt(own * of_beside + 1e-6)) & (least >= 0.02 * energy)
        return ComparedPlaces(inner, detailed, agreeing, own=own, of_beside=of_beside, window=scale.window)


@dataclass(frozen=True, slots=True)
class ComparedPlaces:
    """Compared places: which have details, which of these agree, and the variance in each of the two images."""

    inner: Mask
    detailed: Mask
    agreeing: Mask
    own: NDArray[np.float32]
    of_beside: NDArray[np.float32]
    window: int

    @property
    def differing(self) -> Mask:
        """ComparedPlaces with details that do not agree, specks left out."""
        differing = (self.detailed & ~self.agreeing).astype(np.uint8)
        return np.asarray(cv2.morphologyEx(differing, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8)) > 0)

    @property
    def share_agreeing(self) -> float:
        """Share of the places with details that agree."""
        return float(self.agreeing.sum() / max(1, self.detailed.sum()))

    @property
    def covered(self) -> float:
        """Share of all compared places with details that agree."""
        return float(self.agreeing.sum() / max(1, self.inner.sum()))

    @property
    def region(self) -> float:
        """The box around all that differs, as far as the window does not widen it, as a share of the image."""
        sides, _ = self._box(_SPECK * self.inner.size)
        return float(np.prod(np.maximum(sides - self.window + 1, 1)) / self.inner.size) if sides.any() else 0.0

    @property
    def is_scattered(self) -> bool:
        """True if what differs lies far apart, as filled-in fields and bars of a chart do; a caption lies together."""
        sides, n_differing = self._box(_DOT * self.window**2, of_largest=0.05)
        area = int(np.prod(sides))
        share = area / self.inner.size
        return share > _LARGEST_BOX or (share > _SMALLEST_BOX and n_differing < _FILLED * area)

    def _box(self, least: float, *, of_largest: float = 0.0) -> tuple[NDArray[np.int64], int]:
        """Sides of the box around all differing regions of more than ``least`` pixels, and how many pixels differ;
        without regions of less than a share of the largest."""
        stats = np.asarray(cv2.connectedComponentsWithStats(self.differing.astype(np.uint8))[2], np.int64)[1:]
        areas = stats[:, cv2.CC_STAT_AREA]
        large = stats[areas > max(least, of_largest * areas.max(initial=0))]
        if not len(large):
            return np.zeros(2, np.int64), 0
        starts = large[:, [cv2.CC_STAT_LEFT, cv2.CC_STAT_TOP]]
        sides = (starts + large[:, [cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT]]).max(axis=0) - starts.min(axis=0)
        return sides, int(large[:, cv2.CC_STAT_AREA].sum())

    @property
    def moved(self) -> float:
        """The share of the image where something is only in the one, if as much is only in the other elsewhere."""
        return float(min(put.mean() for put in self._put_on_one()))

    @property
    def replaced(self) -> float:
        """The share of the image where both have details that differ."""
        gray, beside = self._put_on_one()
        return float((self.differing & ~gray & ~beside).mean())

    def _put_on_one(self) -> tuple[Mask, Mask]:
        """Places that differ and are plain in the other image: of the first, of the second."""
        of_gray, of_beside = self.of_beside < _PLAIN * self.own, self.own < _PLAIN * self.of_beside
        return self.differing & of_gray, self.differing & of_beside
