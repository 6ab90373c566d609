"""Measure on pixels how one image was made from another: turned, cut out, enlarged, its contrast changed. Tried in this
order: the whole image in one of the eight positions of a rectangle; an upright part (``crop_localization.py``); local
features that both images share (``registration.py``), at any angle; and a part in one of the other three positions."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import compress
from typing import cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.vision.crop_localization import locate_crop
from darkroom.pipelines.vision.registration import laid_over, pose_of

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
_MEASURED_SIDE = 900
_TURNS = {0: None, 90: Image.Transpose.ROTATE_90, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_270}
_POSITIONS = [(angle, mirrored) for mirrored in (False, True) for angle in _TURNS]
"""In which a whole image may be shown: its angle, and whether it is mirrored."""


class Operation(IntEnum):  # its docstring is sent in the schema of a decision: a part of the ledger's keys
    """What can be done to an image, by the tool ids of Thyme's table 9."""

    NONE = -1
    DIRECTION = 1
    LIGHTING = 2
    REGION = 3
    COMBINED = 4


@dataclass(frozen=True, slots=True)
class ImageTransform:
    """Measured change of an image. ``angle``: degrees counter-clockwise, 0..360. ``box``: the part that is shown, in
    the frame of the original. ``enlargement``: pixels per pixel of the original, along a side. ``contrast_gain``: how
    much wider the grey levels of that part are spread. ``brightened``: how far their mean has moved, of 255."""

    angle: float
    mirrored: bool
    box: Box
    share: float
    enlargement: float
    contrast_gain: float
    brightened: float

    @property
    def turns(self) -> bool:
        return self.mirrored or residual(self.angle) > TURNED_DEGREES

    @property
    def relights(self) -> bool:
        """True if contrast was gained or brightness moved."""
        return self.contrast_gain >= CONTRAST_GAIN or abs(self.brightened) >= BRIGHTER_LEVELS

    @property
    def rescales(self) -> bool:
        """True if a part was chosen or the image enlarged."""
        return self.share <= PART_SHARE or self.enlargement >= ENLARGED

    @property
    def operations(self) -> tuple[Operation, ...]:
        single = (Operation.DIRECTION, Operation.LIGHTING, Operation.REGION)
        return tuple(compress(single, (self.turns, self.relights, self.rescales)))

    def __str__(self) -> str:
        mirrored = ", mirrored" if self.mirrored else ""
        place = f"turned by {self.angle:.0f} degrees{mirrored}, shows {self.share:.1%}, enlarged {self.enlargement:.1f}"
        return f"{place} times, contrast {self.contrast_gain:.2f} times, brightness {self.brightened:+.0f}"


def residual(angle: float) -> float:
    """Degrees between ``angle`` and no turn at all, 0..180."""
    return abs((angle + 180) % 360 - 180)


def measure_transform(
    output: Image.Image, original: Image.Image, boxes: Sequence[Box] = (), *, is_tilted: bool = False
) -> ImageTransform | None:
    """Measure what made ``output`` of ``original``; None if they share nothing. ``boxes``: candidates for a crop.
    ``is_tilted``: features are compared first, which is quicker where a turn by any angle is expected."""
    if whole := _whole(output, original):
        return whole
    upright, *turned = _TURNS
    part = None if is_tilted else _part(output, original, boxes, [upright])
    angles = _TURNS if is_tilted else turned
    return part or _by_features(output, original) or _part(output, original, boxes, angles)


def trimmed(image: Image.Image) -> Image.Image:
    """Without the white border that matplotlib draws around what it shows."""
    rgb = image.convert("RGB")
    content = ImageChops.invert(rgb).getbbox()
    return rgb.crop(content) if content else rgb


def side_by_side(image: Image.Image, n: int) -> list[Image.Image]:
    """The ``n`` images that white bars divide, as matplotlib draws axes in a row; the whole if it is not so many."""
    has_ink = np.asarray(image.convert("L")).min(axis=0) < 255
    sides = np.flatnonzero(np.diff(has_ink.astype(int), prepend=0, append=0)).reshape(-1, 2)
    return [image.crop((left, 0, right, image.height)) for left, right in sides] if len(sides) == n else [image]


def _whole(output: Image.Image, original: Image.Image) -> ImageTransform | None:
    """The whole image, turned by right angles, mirrored or not."""
    positions = [position for position in _POSITIONS if _has_shape(output, position[0], original)]
    if not positions:
        return None
    original, output = original.convert("L"), output.convert("L")  # colours are not compared
    field = _levelled(original)
    best, transform = _SAME, None
    for angle, mirrored in positions:
        back = _turned_back(output, angle)
        upright = back.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else back
        if (likeness := float((field * _levelled(upright)).mean())) > best:
            best, transform = likeness, _changed(upright, original, Box(0, 0, *original.size), angle, mirrored=mirrored)
    return transform


def _has_shape(output: Image.Image, angle: int, original: Image.Image) -> bool:
    """True if ``output``, put back by ``angle``, has the sides of ``original`` in proportion."""
    width, height = reversed(output.size) if angle in (90, 270) else output.size
    return abs(math.log(width / height * original.height / original.width)) <= 0.05


def _turned_back(output: Image.Image, angle: int) -> Image.Image:
    turn = _TURNS[-angle % 360]
    return output if turn is None else output.transpose(turn)


def _levelled(image: Image.Image) -> NDArray[np.float64]:
    """A thumbnail that looks the same whatever was done to contrast and brightness: mean 0, deviation 1."""
    small = np.asarray(image.convert("L").resize((_THUMB, _THUMB), Image.Resampling.BOX), np.float64)
    ranks = np.searchsorted(np.sort(small, axis=None), small).astype(np.float64)
    return cast(NDArray[np.float64], (ranks - ranks.mean()) / (ranks.std() or 1.0))


def _part(
    output: Image.Image, original: Image.Image, boxes: Sequence[Box], angles: Iterable[int]
) -> ImageTransform | None:
    for angle in angles:
        upright = _turned_back(output, angle)
        if (location := locate_crop(upright, original, boxes)) is not None:
            return _changed(upright, original, location.box, angle)
    return None


def _changed(
    upright: Image.Image, original: Image.Image, box: Box, angle: float, *, mirrored: bool = False
) -> ImageTransform:
    after, before = (_greys(image) for image in (upright, original.crop(box)))
    share = box.area / (original.width * original.height)
    enlargement = math.sqrt(upright.width * upright.height / box.area)
    return ImageTransform(float(angle), mirrored, box, share, enlargement, *_relit(after, before))


def _relit(after: NDArray[np.float64], before: NDArray[np.float64]) -> tuple[float, float]:
    """Contrast gained and brightness moved."""
    return _spread(after) / _spread(before), float(after.mean() - before.mean())


def _greys(image: Image.Image) -> NDArray[np.float64]:
    width, height = (max(1, side * 256 // max(256, *image.size)) for side in image.size)
    return np.asarray(image.convert("L").resize((width, height), Image.Resampling.BOX), np.float64)


def _spread(greys: NDArray[np.float64]) -> float:
    return max(float(greys.std()), 0.5)


def _by_features(output: Image.Image, original: Image.Image) -> ImageTransform | None:
    """At any angle and scale, where both images have local features in common."""
    if (pose := pose_of(original, output)) is None:
        return None
    before, after = _grey_pixels(original), _grey_pixels(output)
    shrink, shrink_shown = before.shape[1] / original.width, after.shape[1] / output.width
    linear, shift = pose.matrix[:, :2] * shrink_shown / shrink, pose.matrix[:, 2] * shrink_shown
    overlay = laid_over(after, np.column_stack([linear, shift]), before.shape[::-1])
    covered = overlay.coverage > 127
    if not covered.any():
        return None
    rows, columns = np.flatnonzero(covered.any(axis=1)), np.flatnonzero(covered.any(axis=0))
    sides = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    levels, levels_before = (grey[covered].astype(np.float64) for grey in (overlay.pixels, before))
    box = Box(*(round(float(side) / shrink) for side in sides)).clipped(*original.size)
    return ImageTransform(pose.angle, False, box, float(covered.mean()), pose.scale, *_relit(levels, levels_before))


def _grey_pixels(image: Image.Image) -> NDArray[np.uint8]:
    grey = image.convert("L")
    grey.thumbnail((_MEASURED_SIDE, _MEASURED_SIDE))
    return np.asarray(grey)
