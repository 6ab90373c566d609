"""Frames of a video: matched with an image that shows some, and sampled uniformly for a context.

A figure is taken apart at its background: every region with the shape of a frame, or of a sheet of rows and columns of
frames, is compared with all frames of the video. Not covered: cut-outs, turned or recoloured frames; they count as an
image that shows no frame. Uniform samples are the baseline of PyVision-RL's figure 4.
"""

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from darkroom.pipelines.records import ImageRef, VideoRef
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.samples import FRAME
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.media_validation import MAX_PIXELS, Thumbnails, thumbnail

SIDE = 16
"""Of the thumbnails that are compared."""
SAME_FRAME = 24.0
"""Root mean square difference (0..255) of thumbnails of one frame: scaling and borders below 14, others above 45."""
EQUAL = 0.5
"""Frames that differ from an image by no more than this above the best one cannot be distinguished."""
MAX_CELLS = 64

_BACKGROUND = 10
_SMALLEST = 24
_FILLED = 0.55
_SHAPE = 0.06


@dataclass(frozen=True, slots=True)
class FrameMatch:
    """One frame in an image: the numbers of all frames of the video that look like it, and the least difference."""

    box: Box
    numbers: tuple[int, ...]
    difference: float


def match_frames(image: Image.Image, film: Thumbnails, *, aspect: float) -> tuple[FrameMatch, ...]:
    """The frames in ``image``; ``film``: all frames' thumbnails (N, SIDE, SIDE, 3); ``aspect``: width by height."""
    pixels = np.asarray(image.convert("RGB"))
    film_rows = film.reshape(len(film), -1)
    return tuple(frame for region in _regions(pixels) for frame in _sheet(pixels, region, film_rows, aspect))


def _regions(pixels: NDArray[np.uint8]) -> Iterator[Box]:
    """Parts that stand out from the background: the larger ones, or the whole image where nothing does."""
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    ground = np.median(border, axis=0)
    if (np.abs(border - ground).max(axis=1) <= _BACKGROUND).mean() < 0.9:
        yield Box(0, 0, pixels.shape[1], pixels.shape[0])
        return
    level = ground.astype(np.int16)
    mask = 1 - cv2.inRange(pixels, level - _BACKGROUND, level + _BACKGROUND) // 255
    n_parts, parts, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    for part, (x, y, wide, high, area) in enumerate(stats[1:n_parts].tolist(), 1):
        if wide >= _SMALLEST and high >= _SMALLEST and area >= _FILLED * wide * high:
            inside = parts[y : y + high, x : x + wide] == part
            # without what sticks out of it: the ticks of axes
            columns, rows = (np.flatnonzero(inside.mean(axis=axis) >= _FILLED) for axis in (0, 1))
            if len(columns) and len(rows):
                yield Box(x + int(columns[0]), y + int(rows[0]), x + int(columns[-1]) + 1, y + int(rows[-1]) + 1)


def _sheet(pixels: NDArray[np.uint8], region: Box, film: NDArray[np.float32], aspect: float) -> list[FrameMatch]:
    """The region as rows and columns of frames, with the fewest that fit it; nothing where it fits in no way."""
    layouts = [(rows, columns) for rows in range(1, MAX_CELLS + 1) for columns in range(1, MAX_CELLS // rows + 1)]
    for rows, columns in sorted((layout for layout in layouts if _fits(region, *layout, aspect)), key=math.prod):
        cells = (_match(pixels, box, film) for box in _split(region, rows, columns))  # one that fits not is the last
        frames = list(takewhile(lambda cell: cell.difference <= SAME_FRAME, cells))
        if len(frames) == rows * columns:
            return frames
    return []


def _fits(region: Box, rows: int, columns: int, aspect: float) -> bool:
    wide, high = region.width / columns, region.height / rows
    return min(wide, high) >= _SMALLEST and abs(wide / high / aspect - 1) <= _SHAPE


def _split(region: Box, rows: int, columns: int) -> Iterator[Box]:
    xs = [region.x1 + round(column * region.width / columns) for column in range(columns + 1)]
    ys = [region.y1 + round(row * region.height / rows) for row in range(rows + 1)]
    return (Box(x1, y1, x2, y2) for y1, y2 in pairwise(ys) for x1, x2 in pairwise(xs))


def _match(pixels: NDArray[np.uint8], box: Box, film: NDArray[np.float32]) -> FrameMatch:
    cell = thumbnail(pixels[box.y1 : box.y2, box.x1 : box.x2], side=SIDE).reshape(-1)
    differences = np.sqrt(np.mean((film - cell) ** 2, axis=1))
    best = float(differences.min())
    return FrameMatch(box, tuple(np.flatnonzero(differences <= best + EQUAL).tolist()), round(best, 2))


MAX_FRAMES = 1024
"""Of one video."""


def frame_numbers(video: VideoRef, *, n_frames: int | None = None, per_second: float | None = None) -> tuple[int, ...]:
    """The middle frames of ``n_frames`` equal parts, or one frame every ``1 / per_second`` from the first on; no frame
    twice, at most ``MAX_FRAMES``. Raises ``ValueError`` unless just one is given, and for a rate of a video without."""
    if (n_frames is None) == (per_second is None):
        raise ValueError("frames are sampled by number or by rate: give one of both")
    if per_second is not None:
        if video.fps <= 0:
            raise ValueError("the video does not say how many frames a second has; sample a number of frames")
        n_frames = max(1, int((video.n_frames - 1) * per_second / video.fps) + 1)
        numbers = [round(place * video.fps / per_second) for place in range(min(n_frames, MAX_FRAMES))]
    else:
        n_parts = min(n_frames or 1, video.n_frames, MAX_FRAMES)
        numbers = [(2 * part + 1) * video.n_frames // (2 * n_parts) for part in range(n_parts)]
    return tuple(dict.fromkeys(min(number, video.n_frames - 1) for number in numbers))


def sampled_frames(
    video: VideoRef, store: ImageStore, *, n_frames: int | None = None, per_second: float | None = None
) -> tuple[ImageRef, ...]:
    """The frames of a stored video as images of the store. Raises as ``frame_numbers``."""
    from darkroom.sandbox._guest.video_frames import FrameSource  # needs the extra `video`

    numbers = frame_numbers(video, n_frames=n_frames, per_second=per_second)
    frames = FrameSource(io.BytesIO(store.read(video)), max_pixels=MAX_PIXELS)
    return tuple(
        store.add_pixels(Image.fromarray(frames.rgb(number)), parent=video.sha256, made_by=f"{FRAME}{number}")
        for number in numbers
    )
