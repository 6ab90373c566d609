"""Local features: places of an image that are found again when it is cropped, scaled, turned or recompressed.

SIFT (Lowe, 2004) with square-rooted descriptors (Arandjelović and Zisserman, 2012), kept as 256 signs of projections:
signatures. Matching ones of a crop differ in 15 bits at the median, unrelated ones in about 130. They are spread evenly
over the image, so that a small crop has its share of them and a caption does not take them all.

An index over many images cuts the first 128 bits into 8 bands; signatures that agree in one band are compared in full.
About 64 bytes per feature.
"""

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.selection.duplicates.key_index import Positions, expanded, pairs_once

Gray = NDArray[np.uint8]
Signatures = NDArray[np.uint64]
Places = NDArray[np.float32]

SIGNATURE_WORDS = 4
"""A signature is four words of 64 bits."""

_SMALLEST_SIDE = 16
_DESCRIPTOR = tomllib.loads(Path(__file__).with_name("mean_descriptor.toml").read_text())
_MEAN = np.array(_DESCRIPTOR["thousandths"], np.float32).ravel() / 1000
"""Projections are taken about it: about the origin, all descriptors would look alike."""


@dataclass(frozen=True, slots=True)
class Features:
    """``places``: (n, 4) of x, y, size (pixels of the image) and angle (degrees); ``signatures``: (n, 4) words."""

    places: Places
    signatures: Signatures

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Features to detect: at most ``most``, found at ``largest_side`` pixels and spread over ``cells`` x ``cells``.
    ``contrast`` is SIFT's threshold, lower for fainter ones; a descriptor covers ``reach`` times the usual radius."""

    most: int
    largest_side: int
    contrast: float
    cells: int
    reach: float = 1.0


def features_of_both(gray: Gray, sought: Sought) -> tuple[Features, Features]:
    """Features of the image and of its mirror image, whose descriptors have the same bins in another order."""
    places, descriptors = _described(gray, sought)
    mirrored = places * np.array([-1, 1, 1, -1], np.float32) + np.array([gray.shape[1] - 1, 0, 0, 180], np.float32)
    return Features(places, _signatures(descriptors)), Features(mirrored, _signatures(descriptors[:, _mirrored_bins()]))


def scaled(gray: Gray, factor: float) -> Gray:
    """The image made smaller; as it is for a factor of 1 or more."""
    if factor >= 1:
        return gray
    height, width = (max(1, round(side * factor)) for side in gray.shape)
    return np.asarray(cv2.resize(gray, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def _described(gray: Gray, sought: Sought) -> tuple[Places, NDArray[np.float32]]:
    factor = min(1.0, sought.largest_side / max(gray.shape))
    small = scaled(gray, factor)
    detector = cv2.SIFT.create(contrastThreshold=sought.contrast, edgeThreshold=15)
    everywhere = np.full_like(small, 255)
    is_large = min(small.shape) >= _SMALLEST_SIDE  # OpenCV raises on a line of pixels
    points, described = detector.detectAndCompute(small, everywhere) if is_large else ((), None)
    if not len(points):
        return np.empty((0, 4), np.float32), np.empty((0, len(_MEAN)), np.float32)
    places = np.array([(*point.pt, point.size, point.angle) for point in points], np.float32)
    chosen = _spread(places, np.array([point.response for point in points], np.float32), small.shape, sought)
    upscaled = np.asarray(places[chosen] / np.array([factor, factor, factor, 1]), np.float32)
    if sought.reach == 1:
        return upscaled, np.asarray(described, np.float32)[chosen]
    # OpenCV begins at the finest octave of those given: one of it leaves the descriptors as they are with all points
    finest = min(points, key=lambda point: (point.octave + 128) & 255)
    for point in points:
        point.size *= sought.reach
    return upscaled, np.asarray(detector.compute(small, [*(points[at] for at in chosen), finest])[1][:-1], np.float32)


def _spread(places: Places, responses: Places, shape: Sequence[int], sought: Sought) -> NDArray[np.int64]:
    """The positions of the strongest of every cell in turn, until there are enough."""
    height, width = shape
    rows = (places[:, 1] * sought.cells // height).astype(int)
    columns = (places[:, 0] * sought.cells // width).astype(int)
    order = np.lexsort((places[:, 0], places[:, 1], -responses, columns, rows))
    of_cell = (rows * sought.cells + columns)[order]
    rank_in_cell = np.arange(len(order)) - np.searchsorted(of_cell, of_cell)
    return cast(NDArray[np.int64], order[np.argsort(rank_in_cell, kind="stable")[: sought.most]])


@cache
def _mirrored_bins() -> NDArray[np.int64]:
    """4 x 4 places around the point, its direction along the second, with 8 directions each."""
    bins = np.arange(len(_MEAN)).reshape(4, 4, 8)
    return np.asarray(bins[::-1][:, :, (-np.arange(8)) % 8].ravel())


@cache
def _projections() -> NDArray[np.float32]:
    rng = np.random.default_rng(20261121)
    rotations = [np.linalg.qr(rng.standard_normal((len(_MEAN), len(_MEAN))))[0] for _ in range(2)]
    return np.hstack(rotations).astype(np.float32)


def _signatures(descriptors: NDArray[np.float32]) -> Signatures:
    roots = np.sqrt(descriptors / np.maximum(descriptors.sum(axis=1, keepdims=True), 1e-9))
    return np.ascontiguousarray(np.packbits((roots - _MEAN) @ _projections() > 0, axis=1)).view(np.uint64)


SAME_PLACE = 56
"""Bits of 256: nine in ten true matches of a recompressed crop stay below, of chance pairs one in several thousand."""

_BANDS = 8
_KEYS = 1 << 16
_COMMON, _N_MEAN = 64, 4
"""A key that more features have than so many, and so many times the mean, tells nothing: letters, ticks of an axis."""
_AT_ONCE = 1 << 17
"""Signatures that are compared at once: 10 MB."""


class SharedPlaces(NamedTuple):
    """Image number ``image`` and the features that it shares, the most alike first, by positions in query and image."""

    image: int
    of_query: Positions
    of_image: Positions


class PartIndex:
    """The features of many images, to be asked which of them share places with another."""

    def __init__(self, images: Iterable[Features]) -> None:
        signatures: list[Signatures] = [np.zeros((0, SIGNATURE_WORDS), np.uint64)]
        lengths = [0]
        for image in images:
            signatures.append(image.signatures)
            lengths.append(len(image))
        self.starts: Positions = np.cumsum(lengths, dtype=np.int64)
        self._signatures = np.concatenate(signatures)
        del signatures
        self._common = _COMMON + _N_MEAN * len(self._signatures) // _KEYS
        orders, offsets = zip(*(_by_key(_band_keys(self._signatures, band)) for band in range(_BANDS)), strict=True)
        self._orders, self._offsets = np.stack(orders), np.stack(offsets)

    def most_alike(self, signatures: Signatures, *, n_images: int, n_features: int) -> Iterator[SharedPlaces]:
        """The images that share most places with a query, the most first. Of an image a feature of the query is the
        same place as the nearest one."""
        pairs = chain.from_iterable(self._in_band(band, signatures) for band in range(_BANDS))
        query, feature, _ = pairs_once(*np.concatenate([np.zeros((0, 2), np.int64), *pairs]).T)
        image = np.searchsorted(self.starts, feature, side="right") - 1
        distance = _distances(signatures[query], self._signatures[feature])
        order = np.lexsort((feature, distance, query, image))
        is_nearest = (np.diff(image[order], prepend=-1) != 0) | (np.diff(query[order], prepend=-1) != 0)
        query, feature, image, distance = (column[order[is_nearest]] for column in (query, feature, image, distance))
        weights = np.bincount(image, 1 - distance / (2 * SAME_PLACE), len(self.starts) - 1)
        for number in np.argsort(-weights, kind="stable")[:n_images].tolist():
            own = np.flatnonzero(image == number)
            own = own[np.argsort(distance[own], kind="stable")[:n_features]]
            yield SharedPlaces(number, query[own], feature[own] - self.starts[number])

    def _in_band(self, band: int, signatures: Signatures) -> Iterator[Positions]:
        keys, offsets = _band_keys(signatures, band), self._offsets[band]
        starts, ends = offsets[keys].astype(np.int64), offsets[keys + 1].astype(np.int64)
        ends = np.where(ends - starts > self._common, starts, ends)
        n_before = np.cumsum(ends - starts)
        n_parts = int(n_before[-1]) // _AT_ONCE + 1 if len(keys) else 0
        cuts = [0, *np.searchsorted(n_before, _AT_ONCE * np.arange(1, n_parts)).tolist(), len(keys)]
        for begin, end in pairwise(cuts):
            query, at = expanded(starts[begin:end], ends[begin:end])
            query += begin
            feature = self._orders[band][at].astype(np.int64)
            same = _distances(signatures[query], self._signatures[feature]) <= SAME_PLACE
            yield np.stack([query[same], feature[same]], axis=1)


def _by_key(keys: Positions) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The features in the order of their keys, and where each key begins; after the last, the end."""
    offsets = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=_KEYS))])
    return np.argsort(keys, kind="stable").astype(np.uint32), offsets.astype(np.uint32)


def _band_keys(signatures: Signatures, band: int) -> Positions:
    return ((signatures[:, band // 4] >> np.uint64(16 * (band % 4))) & np.uint64(_KEYS - 1)).astype(np.int64)


def _distances(signatures: Signatures, signatures_beside: Signatures) -> Positions:
    return cast(Positions, np.bitwise_count(signatures ^ signatures_beside).sum(axis=1, dtype=np.int64))
