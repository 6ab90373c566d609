"""Locate a crop in its original by pixels. Boxes that the model's code spells out are candidates, never proof."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from PIL import Image

from darkroom.pipelines.records.geometry import Box, box_from_corners
from darkroom.pipelines.vision.registration import Gray, scaled_gray

SAME_PIXELS = 12.0
"""Mean absolute difference (0..255) of 64 x 64 thumbnails that show the same: resampling and JPEG stay below."""

_SEARCH_SIDE = 720
_SCALES = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_FOUND = 0.9
_CANDIDATES = 3
_MIN_SIDE = 8
"""Pixels: fewer look like any plain crop; code that spells shares of the sides (0.41, 0.13) seems to mean a pixel."""

_PLAIN = 2.0
"""A patch whose grey levels deviate less than this shows nothing by which it could be found."""


@dataclass(frozen=True, slots=True)
class CropLocation:
    """The part of the original that a crop shows. ``difference``: mean absolute, 0..255, of small thumbnails."""

    box: Box
    difference: float


class _Match(NamedTuple):
    score: float
    box: Box


def locate_crop(crop: Image.Image, original: Image.Image, boxes: Iterable[Box] = ()) -> CropLocation | None:
    """The region of ``original`` that ``crop`` shows, possibly scaled; None when none can be found. The candidate
    ``boxes`` come first and are accepted only if their pixels agree; else usual enlargements are searched."""
    best = best_of(crop, original, boxes)
    return best if best is not None and best.difference <= SAME_PIXELS else _search(crop, original)


def best_of(crop: Image.Image, original: Image.Image, boxes: Iterable[Box]) -> CropLocation | None:
    """The one of the ``boxes`` whose pixels are most like those of ``crop``, however little; None without any."""
    candidates = [
        CropLocation(box, _difference(crop, original.crop(box)))
        for box in boxes
        if box.fits(original.width, original.height) and min(box.width, box.height) >= _MIN_SIDE
    ]
    return min(candidates, key=lambda candidate: candidate.difference, default=None)


def _difference(crop: Image.Image, region: Image.Image) -> float:
    rgb = (image.convert("RGB").resize((64, 64), Image.Resampling.BOX) for image in (crop, region))
    small, small_region = (np.asarray(image, np.int16) for image in rgb)
    return float(np.abs(small - small_region).mean())


def _search(crop: Image.Image, original: Image.Image) -> CropLocation | None:
    """Coarsely in a small copy at every enlargement, then the best few to the pixel in the original."""
    shrink = min(1.0, _SEARCH_SIDE / max(original.size))
    field = scaled_gray(original, shrink)
    coarse = [(match, scale) for scale in _SCALES if (match := _match(field, scaled_gray(crop, shrink / scale)))]
    coarse.sort(key=lambda candidate: candidate[0].score, reverse=True)
    fine = [_refined(crop, original, match.box, scale, shrink) for match, scale in coarse[:_CANDIDATES]]
    best = max((match for match in fine if match), key=lambda match: match.score, default=None)
    if best is None or best.score < _FOUND:
        return None
    return CropLocation(best.box, _difference(crop, original.crop(best.box)))


def _refined(crop: Image.Image, original: Image.Image, box: Box, scale: float, shrink: float) -> _Match | None:
    near = box_from_corners([side / shrink for side in box]).grown(round(2 / shrink)).clipped(*original.size)
    match = _match(scaled_gray(original.crop(near), 1.0), scaled_gray(crop, 1 / scale))
    return match and _Match(
        match.score, Box(*(side + offset for side, offset in zip(match.box, near[:2] * 2, strict=True)))
    )


def _match(field: Gray, patch: Gray) -> _Match | None:
    """Best position of ``patch`` in ``field``; None for a plain patch, which fits everywhere."""
    is_larger = patch.shape[0] > field.shape[0] or patch.shape[1] > field.shape[1]
    if min(patch.shape) < _MIN_SIDE or is_larger or patch.std() < _PLAIN:
        return None
    _, score, _, (x, y) = cv2.minMaxLoc(cv2.matchTemplate(field, patch, cv2.TM_CCOEFF_NORMED))
    return _Match(score, Box(x, y, x + patch.shape[1], y + patch.shape[0]))
