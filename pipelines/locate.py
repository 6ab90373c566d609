"""Where a crop was taken from, measured on pixels: code says what it meant, pixels say what it did."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.geometry import Box, box_from_corners
from pipelines.syntax import parsed

Pixels = NDArray[np.uint8]

SAME_PIXELS = 12.0
"""Mean absolute difference (0..255) of 64 x 64 thumbnails that show the same: resampling and JPEG stay below."""

_SEARCH_SIDE = 720
_SCALES = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_FOUND = 0.9
_CANDIDATES = 3
_PLAIN = 2.0
"""A patch whose grey levels deviate less than this shows nothing by which it could be found."""


@dataclass(frozen=True, slots=True)
class Located:
    """The part of the original that a crop shows. ``difference``: mean absolute, 0..255, of small thumbnails."""

    box: Box
    difference: float


class _Match(NamedTuple):
    score: float
    box: Box


def locate(crop: Image.Image, original: Image.Image, code: str) -> Located | None:
    """The region of ``original`` that ``crop`` shows, possibly scaled; None when it shows none that can be found.

    Boxes that ``code`` spells out are tried first and accepted only if their pixels agree; else the crop is searched
    for in the original at usual enlargements.
    """
    tried = [
        Located(box, _difference(crop, original.crop(box)))
        for box in literal_boxes(code)
        if box.fits(original.width, original.height)
    ]
    best = min(tried, key=lambda found: found.difference, default=None)
    if best is not None and best.difference <= SAME_PIXELS:
        return best
    return _search(crop, original)


def literal_boxes(code: str) -> list[Box]:
    """Every four literal numbers in a tuple or list, or assigned to four names, that could be a box."""
    tree = parsed(code)
    if tree is None:
        return []
    found = [_box(node.elts) for node in ast.walk(tree) if isinstance(node, ast.Tuple | ast.List)]
    found += _slices(tree)
    return list(dict.fromkeys(box for box in found if box is not None))


def _slices(tree: ast.AST) -> Iterable[Box | None]:
    """``image[y1:y2, x1:x2]`` as numpy and OpenCV users write it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) >= 2:
            rows, columns = node.slice.elts[:2]
            if isinstance(rows, ast.Slice) and isinstance(columns, ast.Slice):
                ends = (columns.lower, rows.lower, columns.upper, rows.upper)
                yield _box([end for end in ends if end is not None])


def _box(nodes: list[ast.expr]) -> Box | None:
    values = [_number(node) for node in nodes]
    if len(values) != 4 or None in values:
        return None
    try:
        return box_from_corners([value for value in values if value is not None])
    except ValueError:
        return None


def _number(node: ast.expr) -> float | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return None
    return value if type(value) in (int, float) else None


def _difference(one: Image.Image, other: Image.Image) -> float:
    small = [
        np.asarray(image.convert("RGB").resize((64, 64), Image.Resampling.BOX), np.int16) for image in (one, other)
    ]
    return float(np.abs(small[0] - small[1]).mean())


def _search(crop: Image.Image, original: Image.Image) -> Located | None:
    """Coarsely in a small copy at every enlargement, then the best few to the pixel in the original."""
    shrink = min(1.0, _SEARCH_SIDE / max(original.size))
    field = _gray(original, shrink)
    coarse = [(found, scale) for scale in _SCALES if (found := _match(field, _gray(crop, shrink / scale)))]
    coarse.sort(key=lambda candidate: candidate[0].score, reverse=True)
    fine = [_refined(crop, original, found.box, scale, shrink) for found, scale in coarse[:_CANDIDATES]]
    best = max((found for found in fine if found), key=lambda found: found.score, default=None)
    if best is None or best.score < _FOUND:
        return None
    return Located(best.box, _difference(crop, original.crop(best.box)))


def _refined(crop: Image.Image, original: Image.Image, box: Box, scale: float, shrink: float) -> _Match | None:
    near = box_from_corners([side / shrink for side in box]).grown(round(2 / shrink)).clipped(*original.size)
    found = _match(_gray(original.crop(near), 1.0), _gray(crop, 1 / scale))
    return found and _Match(
        found.score, Box(*(side + offset for side, offset in zip(found.box, near[:2] * 2, strict=True)))
    )


def _match(field: Pixels, patch: Pixels) -> _Match | None:
    """Where ``patch`` fits best in ``field``. A plain patch fits everywhere, so it is found nowhere."""
    if min(patch.shape) < 8 or patch.shape[0] > field.shape[0] or patch.shape[1] > field.shape[1]:
        return None
    if patch.std() < _PLAIN:
        return None
    _, score, _, (x, y) = cv2.minMaxLoc(cv2.matchTemplate(field, patch, cv2.TM_CCOEFF_NORMED))
    return _Match(score, Box(x, y, x + patch.shape[1], y + patch.shape[0]))


def _gray(image: Image.Image, factor: float) -> Pixels:
    size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    return np.asarray(image.convert("L").resize(size, Image.Resampling.BOX))
