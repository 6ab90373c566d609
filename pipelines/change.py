"""How one image was made from another, measured on pixels: turned, cut out, enlarged, its contrast changed.

Tried in this order: the whole image in one of the eight positions of a rectangle; a part of it (``pipelines/locate``)
in one of four; and, for other angles, points that both images share (SIFT and RANSAC).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.geometry import Box
from pipelines.locate import locate

TURNED_DEGREES = 2.0
"""Less is a tremor of the measurement."""

CONTRAST_GAIN = 1.25
"""Grey levels that are spread this much wider are a gain that one sees."""

BRIGHTER_LEVELS = 25.0
"""A change of the mean grey level (0..255) that one sees."""

PART_SHARE = 0.8
"""Who shows more than this of an image has not chosen a region."""

ENLARGED = 1.5
"""Who shows more pixels per pixel than this has enlarged the image."""

_SAME = 0.8
_THUMB = 96
_SIFT_SIDE = 900
_FEWEST_POINTS = 12
_TURNS = (
    (0, None),
    (90, Image.Transpose.ROTATE_90),
    (180, Image.Transpose.ROTATE_180),
    (270, Image.Transpose.ROTATE_270),
)


class Operation(IntEnum):
    """What can be done to an image, by the tool ids of Thyme's table 9."""

    NONE = -1
    DIRECTION = 1
    LIGHTING = 2
    REGION = 3
    COMBINED = 4


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to an image.

    ``angle``: degrees counter-clockwise, 0..360. ``box``: the part that is shown, in the frame of the original.
    ``enlargement``: pixels per pixel of the original, along a side. ``contrast_gain``: how much wider the grey levels
    of that part are spread. ``brightened``: how far their mean has moved, of 255.
    """

    angle: float
    mirrored: bool
    box: Box
    share: float
    enlargement: float
    contrast_gain: float
    brightened: float

    @property
    def turns(self) -> bool:
        """Whether it was turned or mirrored."""
        return self.mirrored or residual(self.angle) > TURNED_DEGREES

    @property
    def relights(self) -> bool:
        """Whether contrast was gained or brightness moved."""
        return self.contrast_gain >= CONTRAST_GAIN or abs(self.brightened) >= BRIGHTER_LEVELS

    @property
    def rescales(self) -> bool:
        """Whether a part was chosen or the image enlarged."""
        return self.share <= PART_SHARE or self.enlargement >= ENLARGED

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations that it consists of."""
        found = {Operation.DIRECTION: self.turns, Operation.LIGHTING: self.relights, Operation.REGION: self.rescales}
        return tuple(operation for operation, applied in found.items() if applied)

    def __str__(self) -> str:
        mirrored = ", mirrored" if self.mirrored else ""
        return (
            f"turned by {self.angle:.0f} degrees{mirrored}, shows {self.share:.1%}, enlarged {self.enlargement:.1f} "
            f"times, contrast {self.contrast_gain:.2f} times, brightness {self.brightened:+.0f}"
        )


def residual(angle: float) -> float:
    """How many degrees ``angle`` is from no turn at all, 0..180."""
    return abs((angle + 180) % 360 - 180)


def change(shown: Image.Image, original: Image.Image, code: str = "") -> Change | None:
    """What made ``shown`` of ``original``; None when they have nothing in common. ``code`` may spell out boxes."""
    return _whole(shown, original) or _part(shown, original, code) or _by_points(shown, original)


def _whole(shown: Image.Image, original: Image.Image) -> Change | None:
    """The whole image, turned by right angles, mirrored or not."""
    field = _levelled(original)
    best, found = _SAME, None
    for angle, mirrored, upright in _positions(shown):
        if abs(math.log(upright.width / upright.height * original.height / original.width)) > 0.05:
            continue
        likeness = float((field * _levelled(upright)).mean())
        if likeness > best:
            best, found = likeness, _changed(upright, original, Box(0, 0, *original.size), angle, mirrored=mirrored)
    return found


def _positions(shown: Image.Image) -> Iterator[tuple[int, bool, Image.Image]]:
    """``shown`` put back from each position in which it may be: the angle, whether it is mirrored, the image."""
    for mirrored in (False, True):
        for angle, _ in _TURNS:
            back = _turned_back(shown, angle)
            yield angle, mirrored, back.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else back


def _turned_back(shown: Image.Image, angle: int) -> Image.Image:
    turn = dict(_TURNS)[-angle % 360]
    return shown if turn is None else shown.transpose(turn)


def _levelled(image: Image.Image) -> NDArray[np.float64]:
    """A thumbnail that looks the same whatever was done to contrast and brightness: mean 0, deviation 1."""
    small = np.asarray(image.convert("L").resize((_THUMB, _THUMB), Image.Resampling.BOX), np.float64)
    ranks = np.searchsorted(np.sort(small, axis=None), small).astype(np.float64)
    levelled: NDArray[np.float64] = (ranks - ranks.mean()) / (ranks.std() or 1.0)
    return levelled


def _part(shown: Image.Image, original: Image.Image, code: str) -> Change | None:
    for angle, _ in _TURNS:
        upright = _turned_back(shown, angle)
        found = locate(upright, original, code)
        if found is not None:
            return _changed(upright, original, found.box, angle)
    return None


def _changed(upright: Image.Image, original: Image.Image, box: Box, angle: float, *, mirrored: bool = False) -> Change:
    after, before = (_greys(image) for image in (upright, original.crop(box)))
    return Change(
        angle=float(angle),
        mirrored=mirrored,
        box=box,
        share=box.area / (original.width * original.height),
        enlargement=math.sqrt(upright.width * upright.height / box.area),
        contrast_gain=_spread(after) / _spread(before),
        brightened=float(after.mean() - before.mean()),
    )


def _greys(image: Image.Image) -> NDArray[np.float64]:
    side = max(image.size)
    small = image.convert("L").resize(
        (max(1, image.width * 256 // max(side, 256)), max(1, image.height * 256 // max(side, 256))),
        Image.Resampling.BOX,
    )
    return np.asarray(small, np.float64)


def _spread(greys: NDArray[np.float64]) -> float:
    return max(float(greys.std()), 0.5)


def _by_points(shown: Image.Image, original: Image.Image) -> Change | None:
    """At any angle and scale: the similarity by which most common points of interest agree."""
    after, before = _grey_pixels(shown), _grey_pixels(original)
    matrix = _similarity(before, after)
    if matrix is None:
        return None
    a, b = float(matrix[0, 0]), float(matrix[1, 0])
    scale = math.hypot(a, b)
    if not 0.05 <= scale <= 20:
        return None
    size = (before.shape[1], before.shape[0])
    back = cv2.invertAffineTransform(matrix)
    aligned = np.asarray(cv2.warpAffine(after, back, size), np.uint8)
    seen = cv2.warpAffine(np.full_like(after, 255), back, size) > 127
    if not seen.any() or _likeness(aligned[seen], before[seen]) < _SAME:
        return None
    rows, columns = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
    widen = original.width / size[0]
    return Change(
        angle=-math.degrees(math.atan2(b, a)) % 360,
        mirrored=False,
        box=Box(*(round(float(side) * widen) for side in (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))).clipped(
            *original.size
        ),
        share=float(seen.mean()),
        enlargement=scale * (shown.width / after.shape[1]) / widen,
        contrast_gain=_spread(aligned[seen].astype(np.float64)) / _spread(before[seen].astype(np.float64)),
        brightened=float(aligned[seen].mean() - before[seen].mean()),
    )


def _grey_pixels(image: Image.Image) -> NDArray[np.uint8]:
    grey = image.convert("L")
    grey.thumbnail((_SIFT_SIDE, _SIFT_SIDE))
    return np.asarray(grey)


def _likeness(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    if one.std() < 1 or other.std() < 1:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _similarity(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> NDArray[np.float64] | None:
    sift = cv2.SIFT.create(nfeatures=1500)
    whole = [np.full_like(pixels, 255) for pixels in (before, after)]  # its types ask for a mask
    found = [sift.detectAndCompute(cv2.equalizeHist(p), mask) for p, mask in zip((before, after), whole, strict=True)]
    (points, words), (points_after, words_after) = found
    if min(len(points), len(points_after)) < _FEWEST_POINTS:
        return None
    pairs = cv2.BFMatcher().knnMatch(words, words_after, k=2)
    good = [pair[0] for pair in pairs if len(pair) == 2 and pair[0].distance < 0.75 * pair[1].distance]
    if len(good) < _FEWEST_POINTS:
        return None
    start = np.array([points[match.queryIdx].pt for match in good], np.float32)
    end = np.array([points_after[match.trainIdx].pt for match in good], np.float32)
    cv2.setRNGSeed(0)  # RANSAC draws; the same images must give the same verdict
    matrix, inliers = cv2.estimateAffinePartial2D(start, end, method=cv2.RANSAC, ransacReprojThreshold=3.0)
    if matrix is None or int(inliers.sum()) < _FEWEST_POINTS:
        return None
    return np.asarray(matrix, np.float64)
