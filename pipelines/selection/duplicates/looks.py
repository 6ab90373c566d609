"""Looks of images, by which the same image is found again: a hash, a small grey copy, and local features.

Features are sought in a copy of 160 pixels, faint and large ones too, so that smooth images have some. About 25 kB per
image. The perceptual hash is the signs of the 64 lowest cosine frequencies of a 32 x 32 thumbnail against their median,
without the mean (the pHash of Zauner, 2010, as the ``imagehash`` package computes it, but taken in zigzag order). An
image with too few frequencies above the noise (a plain one, a gradient) would get bits of chance and has no hash.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from darkroom.pipelines.selection.duplicates.local_features import Features, Gray, Sought, features_of_both, scaled
from darkroom.pipelines.storage.media_validation import on_white

_Thumbnail = NDArray[np.float32]
Hashes = NDArray[np.uint64]

BITS = 64
TURNS = tuple(
    ", ".join(filter(None, parts))
    for parts in product(("", "mirrored"), ("", "rotated 90", "rotated 180", "rotated 270"))
)
"""What was done to the image for each of ``PerceptualHash.turns``; degrees counter-clockwise, after mirroring."""

_SIDE = 32
_FREQUENCIES = ((x, y) for x in range(_SIDE) for y in range(_SIDE) if x or y)
_LOWEST = sorted(_FREQUENCIES, key=sum)[:BITS]
_ROWS, _COLUMNS = (np.array([at[axis] for at in _LOWEST]) for axis in (1, 0))
_NOISE = 3.0
"""A frequency below this (grey levels, orthonormal) may come from the compression."""
_ENOUGH = 16
_FRAME_LEVELS = 10
_LARGEST_FRAME = 0.25
_WORKING_SIDE = 256


@dataclass(frozen=True, slots=True)
class PerceptualHash:
    """``turns[k]`` is the hash of the image after ``TURNS[k]``."""

    turns: tuple[int, ...]

    @property
    def bits(self) -> int:
        """The hash of the image as it is."""
        return self.turns[0]


def perceptual_hash(image: Image.Image) -> PerceptualHash | None:
    """The image's hash; None when it shows too little to have one. A plain frame around it is left out."""
    gray = _gray(image)
    (top, bottom), (start, end) = _frame(gray), _frame(gray.T)
    inner = gray[top : gray.shape[0] - bottom, start : gray.shape[1] - end]
    small = Image.fromarray(inner if inner.size else gray).resize((_SIDE, _SIDE), Image.Resampling.BOX)
    thumbnail = np.asarray(small, np.float32)
    if int((np.abs(_frequencies(thumbnail)) > _NOISE).sum()) < _ENOUGH:
        return None
    sides = (thumbnail, thumbnail[:, ::-1])
    return PerceptualHash(tuple(_hash(np.rot90(side, quarter)) for side in sides for quarter in range(4)))


def _gray(image: Image.Image) -> NDArray[np.uint8]:
    """Grey, over white, and small enough to be quick."""
    longest = max(image.size)
    gray = on_white(image).convert("L")
    if longest > _WORKING_SIDE:
        size = (max(1, gray.width * _WORKING_SIDE // longest), max(1, gray.height * _WORKING_SIDE // longest))
        gray = gray.resize(size, Image.Resampling.BOX)
    return np.asarray(gray)


def _frame(gray: NDArray[np.uint8]) -> tuple[int, int]:
    """Count the rows at the top and at the bottom that hold one colour; none where only one side does."""
    most = int(gray.shape[0] * _LARGEST_FRAME)
    plain = np.ptp(gray, axis=1) <= _FRAME_LEVELS
    ends = [int(np.argmin(side)) if not side.all() else most for side in (plain, plain[::-1])]
    return (min(ends[0], most), min(ends[1], most)) if min(ends) else (0, 0)


def _frequencies(thumbnail: _Thumbnail) -> _Thumbnail:
    spectrum = np.asarray(cv2.dct(np.ascontiguousarray(thumbnail)), np.float32)
    return cast(_Thumbnail, spectrum[_ROWS, _COLUMNS])


def _hash(thumbnail: _Thumbnail) -> int:
    lowest = _frequencies(thumbnail)
    return int.from_bytes(np.packbits(lowest > np.median(lowest)).tobytes(), "big")


def band_keys(hashes: Hashes, shift: int, width: int) -> NDArray[np.uint32]:
    """``width`` bits of every hash, from bit ``shift`` on."""
    return ((hashes >> np.uint64(shift)) & np.uint64((1 << width) - 1)).astype(np.uint32)


def flips(width: int, most: int) -> Iterator[int]:
    """Every pattern of at most so many of ``width`` bits."""
    for n in range(most + 1):
        yield from (sum(1 << bit for bit in bits) for bits in combinations(range(width), n))


SIDE = 320
"""The longer side, pixels, at which images are compared with one another."""
_SOUGHT = Sought(most=96, largest_side=160, contrast=0.001, cells=8, reach=1.5)
_QUALITY = 92


@dataclass(frozen=True, slots=True)
class Look:
    """An image as it is compared: ``features`` of the image and of its mirror image, in pixels of ``gray``."""

    hash: PerceptualHash | None
    jpeg: bytes
    features: tuple[Features, Features]

    @property
    def longer_side(self) -> int:
        """Longer side of the grey copy, pixels."""
        return max(Image.open(io.BytesIO(self.jpeg)).size)

    @property
    def gray(self) -> Gray:
        """The small grey copy, decoded anew."""
        return np.asarray(cv2.imdecode(np.frombuffer(self.jpeg, np.uint8), cv2.IMREAD_GRAYSCALE), np.uint8)


def look_of(image: Image.Image) -> Look:
    return look_of_gray(gray_pixels(image), perceptual_hash(image))


def look_of_gray(gray: Gray, hashed: PerceptualHash | None) -> Look:
    """The look of an image whose grey levels and hash are there."""
    small = scaled(gray, min(1.0, SIDE / max(gray.shape)))
    encoded = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1]
    return Look(hashed, encoded.tobytes(), features_of_both(small, _SOUGHT))


def gray_pixels(image: Image.Image) -> Gray:
    """Grey levels, over white where the image is transparent."""
    return np.asarray(on_white(image).convert("L"))
