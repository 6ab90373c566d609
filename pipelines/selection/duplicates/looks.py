"""What is kept of an image so that the same image is found again: a hash, a small grey copy, and its local features.

Features are places with a signature of 256 bits; signatures that differ in few bits are the same place seen twice.
Those of a look are ORB's (Rublee et al., 2011) on a copy of ``SIDE`` pixels, spread evenly so that a caption does not
take them all, once for the image and once for its mirror image. About 30 kB per image.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.selection.duplicates.perceptual import PerceptualHash, on_white, perceptual_hash

Gray = NDArray[np.uint8]
Signatures = NDArray[np.uint64]
Places = NDArray[np.float32]

SIGNATURE_WORDS = 4
"""A signature is four words of 64 bits."""
SIDE = 320
"""The longer side, pixels, at which images are compared with one another."""
_N_FEATURES = 96
_N_FOUND = 600
_CELLS = 8
_EDGE = 12
_QUALITY = 92


@dataclass(frozen=True, slots=True)
class Features:
    """``places``: (n, 4) of x, y, size (pixels of the image) and angle (degrees); ``signatures``: (n, 4) words."""

    places: Places
    signatures: Signatures

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, slots=True)
class Look:
    """An image as it is compared: ``features`` of the image and of its mirror image, in pixels of ``gray``."""

    hash: PerceptualHash | None
    jpeg: bytes
    features: tuple[Features, Features]

    @property
    def gray(self) -> Gray:
        """The small grey copy, decoded anew."""
        return np.asarray(cv2.imdecode(np.frombuffer(self.jpeg, np.uint8), cv2.IMREAD_GRAYSCALE), np.uint8)


def look_of(image: Image.Image) -> Look:
    """The look of an image."""
    return look_of_gray(gray_pixels(image), perceptual_hash(image))


def look_of_gray(gray: Gray, hashed: PerceptualHash | None) -> Look:
    """The look of an image whose grey levels and hash are there."""
    small = scaled(gray, min(1.0, SIDE / max(gray.shape)))
    encoded = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1]
    mirrored = np.ascontiguousarray(small[:, ::-1])
    return Look(hashed, encoded.tobytes(), (_orb_features(small), _orb_features(mirrored)))


def gray_pixels(image: Image.Image) -> Gray:
    """Grey levels, over white where the image is transparent."""
    return np.asarray(on_white(image).convert("L"))


def scaled(gray: Gray, factor: float) -> Gray:
    """The image made smaller; as it is for a factor of 1 or more."""
    if factor >= 1:
        return gray
    height, width = (max(1, round(side * factor)) for side in gray.shape)
    return np.asarray(cv2.resize(gray, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def spread(places: Places, responses: Places, shape: Sequence[int], *, cells: int, most: int) -> NDArray[np.int64]:
    """The positions of the strongest of every cell in turn, until there are ``most``."""
    height, width = shape
    rows, columns = (places[:, 1] * cells // height).astype(int), (places[:, 0] * cells // width).astype(int)
    order = np.lexsort((places[:, 0], places[:, 1], -responses, columns, rows))
    of_cell = (rows * cells + columns)[order]
    rank_in_cell = np.arange(len(order)) - np.searchsorted(of_cell, of_cell)
    chosen: NDArray[np.int64] = order[np.argsort(rank_in_cell, kind="stable")[:most]]
    return chosen


def placed(points: Sequence[cv2.KeyPoint]) -> Places:
    """Of every point x, y, size and angle."""
    return np.array([(*point.pt, point.size, point.angle) for point in points], np.float32).reshape(-1, 4)


@cache
def _orb() -> cv2.ORB:
    return cv2.ORB.create(_N_FOUND, scaleFactor=1.2, nlevels=6, edgeThreshold=_EDGE, fastThreshold=5)


def _orb_features(gray: Gray) -> Features:
    points = _orb().detect(gray) if min(gray.shape) > 2 * _EDGE else ()
    places = placed(points)
    responses = np.array([point.response for point in points], np.float32)
    chosen = spread(places, responses, gray.shape, cells=_CELLS, most=_N_FEATURES)
    kept, descriptors = _orb().compute(gray, [points[at] for at in chosen]) if len(chosen) else ((), None)
    if descriptors is None:
        return Features(np.empty((0, 4), np.float32), np.empty((0, SIGNATURE_WORDS), np.uint64))
    return Features(placed(kept), np.ascontiguousarray(descriptors).view(np.uint64))
