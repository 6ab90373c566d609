"""Which frames of a video a picture shows, measured on pixels: a frame alone, in axes of a figure, or in a sheet.

A figure is taken apart at its background: every region with the shape of a frame, or of a sheet of rows and columns of
frames, is compared with all frames of the video. Not covered: cut-outs, turned or recoloured frames; they count as a
picture that shows no frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.geometry import Box
from pipelines.videos import Thumbnails, thumbnail

SIDE = 16
"""Of the thumbnails that are compared."""
SAME_FRAME = 12.0
"""Root mean square difference (0..255) of thumbnails that show the same frame: scaling and borders stay below."""
EQUAL = 0.5
"""Frames that differ from a picture by no more than this above the best one cannot be told apart."""
MAX_CELLS = 64

_BACKGROUND = 10
_SMALLEST = 24
_FILLED = 0.55
_SHAPE = 0.06


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """One frame in a picture: the numbers of all frames of the video that look like it, and the least difference."""

    box: Box
    numbers: tuple[int, ...]
    difference: float


def shown_frames(picture: Image.Image, film: Thumbnails, *, aspect: float) -> tuple[ShownFrame, ...]:
    """The frames in ``picture``. ``film``: all frames' thumbnails (N, SIDE, SIDE, 3); ``aspect``: a frame's width by
    its height."""
    pixels = np.asarray(picture.convert("RGB"))
    film_rows = film.reshape(len(film), -1)
    found: list[ShownFrame] = []
    for region in _regions(pixels):
        found += _best_sheet(pixels, region, film_rows, aspect)
    return tuple(found)


def _regions(pixels: NDArray[np.uint8]) -> Iterator[Box]:
    """What stands out from the background: the whole picture where nothing of it does, else its larger parts."""
    height, width = pixels.shape[:2]
    whole = Box(0, 0, width, height)
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    ground = np.median(border, axis=0)
    if (np.abs(border - ground).max(axis=1) <= _BACKGROUND).mean() < 0.9:
        yield whole
        return
    mask = (np.abs(pixels.astype(np.int16) - ground.astype(np.int16)).max(axis=2) > _BACKGROUND).astype(np.uint8)
    n_parts, parts, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    for part, (x, y, wide, high, area) in enumerate(stats[1:n_parts].tolist(), 1):
        if wide >= _SMALLEST and high >= _SMALLEST and area >= _FILLED * wide * high:
            yield _trimmed(parts[y : y + high, x : x + wide] == part, x, y)


def _trimmed(inside: NDArray[np.bool_], x: int, y: int) -> Box:
    """The part without what sticks out of it: the ticks of axes."""
    columns, rows = (np.flatnonzero(inside.mean(axis=axis) >= _FILLED) for axis in (0, 1))
    if not len(columns) or not len(rows):
        return Box(x, y, x, y)
    return Box(x + int(columns[0]), y + int(rows[0]), x + int(columns[-1]) + 1, y + int(rows[-1]) + 1)


def _best_sheet(
    pixels: NDArray[np.uint8], region: Box, film: NDArray[np.float32], aspect: float
) -> Sequence[ShownFrame]:
    """The region as rows and columns of frames, as it fits them best; nothing where it fits in no way."""
    sheets = [_cells(pixels, region, rows, columns, film) for rows, columns in _layouts(region, aspect)]
    fitting = [sheet for sheet in sheets if all(cell.difference <= SAME_FRAME for cell in sheet)]
    return min(fitting, key=lambda sheet: sum(cell.difference for cell in sheet) / len(sheet), default=[])


def _layouts(region: Box, aspect: float) -> Iterator[tuple[int, int]]:
    for rows in range(1, MAX_CELLS + 1):
        for columns in range(1, MAX_CELLS // rows + 1):
            wide, high = region.width / columns, region.height / rows
            if min(wide, high) >= _SMALLEST and abs(wide / high / aspect - 1) <= _SHAPE:
                yield rows, columns


def _cells(
    pixels: NDArray[np.uint8], region: Box, rows: int, columns: int, film: NDArray[np.float32]
) -> list[ShownFrame]:
    found = []
    for row in range(rows):
        for column in range(columns):
            box = Box(
                region.x1 + round(column * region.width / columns),
                region.y1 + round(row * region.height / rows),
                region.x1 + round((column + 1) * region.width / columns),
                region.y1 + round((row + 1) * region.height / rows),
            )
            cell = thumbnail(pixels[box.y1 : box.y2, box.x1 : box.x2], side=SIDE).reshape(-1)
            differences = np.sqrt(np.mean((film - cell) ** 2, axis=1))
            best = float(differences.min())
            numbers = tuple(np.flatnonzero(differences <= best + EQUAL).tolist())
            found.append(ShownFrame(box, numbers, round(best, 2)))
    return found
