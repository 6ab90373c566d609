"""Where a crop was taken from, measured on pixels: code says what it meant, pixels say what it did."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.geometry import Box, box_from_corners

Pixels = NDArray[np.uint8]

SAME_PIXELS = 12.0
"""Mean absolute difference (0..255) of 64 x 64 thumbnails that show the same: resampling and JPEG stay below."""

_SEARCH_SIDE = 720
_SCALES = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_FOUND = 0.9


@dataclass(frozen=True, slots=True)
class Located:
    """The part of the original that a crop shows. ``difference``: mean absolute, 0..255, of small thumbnails."""

    box: Box
    difference: float


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
    try:
        tree = ast.parse(code)
    except SyntaxError:
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
    return float(value) if type(value) in (int, float) else None


def _difference(one: Image.Image, other: Image.Image) -> float:
    small = [
        np.asarray(image.convert("RGB").resize((64, 64), Image.Resampling.BOX), np.int16) for image in (one, other)
    ]
    return float(np.abs(small[0] - small[1]).mean())


def _search(crop: Image.Image, original: Image.Image) -> Located | None:
    shrink = min(1.0, _SEARCH_SIDE / max(original.size))
    field = _gray(original, shrink)
    best, where = 0.0, None
    for scale in _SCALES:
        patch = _gray(crop, shrink / scale)
        if min(patch.shape) < 8 or patch.shape[0] > field.shape[0] or patch.shape[1] > field.shape[1]:
            continue
        scores = cv2.matchTemplate(field, patch, cv2.TM_CCOEFF_NORMED)
        _, score, _, (x, y) = cv2.minMaxLoc(scores)
        if score > best:
            best, where = score, (x, y, x + patch.shape[1], y + patch.shape[0])
    if where is None or best < _FOUND:
        return None
    box = box_from_corners([side / shrink for side in where]).clipped(*original.size)
    return Located(box, _difference(crop, original.crop(box)))


def _gray(image: Image.Image, factor: float) -> Pixels:
    size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    return np.asarray(image.convert("L").resize(size, Image.Resampling.BOX))
