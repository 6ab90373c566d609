"""Images of benchmarks that a training image shows: the same bytes, the same look, or a part of one in the other.

Parts are found by an index of signatures over all of a benchmark's images. Signatures that differ in few of 256 bits
are the same place seen twice. The first 128 bits are cut into 8 bands; two that agree in one band are compared in full.
About 160 bytes of memory per feature.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.selection.decontamination.alignment import Alignment, align
from pipelines.selection.decontamination.base import ContaminationKind
from pipelines.selection.decontamination.features import (
    KEPT_SIDE,
    SIGNATURE_WORDS,
    Features,
    Fingerprint,
    Gray,
    Signatures,
    features,
    gray_pixels,
    scaled,
)
from pipelines.selection.duplicates import MAX_DISTANCE, PerceptualHash, perceptual_hash
from pipelines.selection.duplicates.images import Positions, expanded
from pipelines.selection.duplicates.perceptual import BITS, TURNS

SAME_PLACE = 56
"""Bits of 256: nine in ten true matches of a recompressed crop stay below, of chance pairs one in several thousand."""

_BANDS = 8
_KEYS = 1 << 16
_CANDIDATES = 5
_MOST_PAIRS = 128
_BATCH = 64


class Correspondence(NamedTuple):
    """Candidate image ``image`` and the features that it shares: positions in the query and in the image."""

    image: int
    of_query: Positions
    of_image: Positions


@dataclass(frozen=True, slots=True)
class _Shared:
    query: Positions
    feature: Positions
    distance: NDArray[np.int64]


class PartIndex:
    """The features of many images, to be asked which of them share places with another."""

    def __init__(self, images: Sequence[Features]) -> None:
        counts = [len(image) for image in images]
        self._starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._signatures = np.concatenate(
            [np.zeros((0, SIGNATURE_WORDS), np.uint64), *(image.signatures for image in images)]
        )
        keys_by_band = [_band_keys(self._signatures, band) for band in range(_BANDS)]
        self._orders = [np.argsort(keys, kind="stable").astype(np.uint32) for keys in keys_by_band]
        self._offsets = [
            np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=_KEYS))]).astype(np.int64)
            for keys in keys_by_band
        ]

    def candidates(self, query: Features) -> list[Correspondence]:
        """The images that share most places with ``query``, the most first."""
        shared = self._shared(query.signatures)
        image = np.searchsorted(self._starts, shared.feature, side="right") - 1
        order = np.lexsort((shared.feature, shared.distance, shared.query, image))
        _, firsts = np.unique(np.stack([image[order], shared.query[order]]), axis=1, return_index=True)
        chosen = order[firsts]  # of every image, the nearest feature to each of the query's
        weights = np.bincount(image[chosen], 1 - shared.distance[chosen] / (2 * SAME_PLACE), len(self._starts) - 1)
        best = [int(number) for number in np.argsort(-weights, kind="stable")[:_CANDIDATES] if weights[number] > 0]
        return [self._correspondence(number, image, shared, chosen) for number in best]

    def _correspondence(self, number: int, image: Positions, shared: _Shared, chosen: Positions) -> Correspondence:
        of = chosen[image[chosen] == number]
        of = of[np.argsort(shared.distance[of], kind="stable")[:_MOST_PAIRS]]
        return Correspondence(number, shared.query[of], shared.feature[of] - self._starts[number])

    def _shared(self, signatures: Signatures) -> _Shared:
        """All pairs of features that are the same place, each once."""
        pairs: list[Positions] = [np.zeros((0, 2), np.int64)]
        for start in range(0, len(signatures), _BATCH):
            batch = signatures[start : start + _BATCH]
            offset = np.array([start, 0])
            pairs += [self._in_band(band, batch) + offset for band in range(_BANDS)]
        joined = np.unique(np.concatenate(pairs), axis=0)
        query, feature = joined[:, 0], joined[:, 1]
        return _Shared(query, feature, _distances(signatures[query], self._signatures[feature]))

    def _in_band(self, band: int, signatures: Signatures) -> Positions:
        keys, offsets = _band_keys(signatures, band), self._offsets[band]
        query, at = expanded(offsets[keys], offsets[keys + 1])
        feature = self._orders[band][at].astype(np.int64)
        same = _distances(signatures[query], self._signatures[feature]) <= SAME_PLACE
        return np.stack([query[same], feature[same]], axis=1)


def _band_keys(signatures: Signatures, band: int) -> Positions:
    return ((signatures[:, band // 4] >> np.uint64(16 * (band % 4))) & np.uint64(_KEYS - 1)).astype(np.int64)


def _distances(signatures: Signatures, signatures_beside: Signatures) -> Positions:
    distances: Positions = np.bitwise_count(signatures ^ signatures_beside).sum(axis=1, dtype=np.int64)
    return distances


_MOST_FEATURES = 1024


class ImageMatch(NamedTuple):
    """Image number ``image`` was seen."""

    image: int
    kind: ContaminationKind
    score: float
    detail: str


class ImageIndex:
    """All images of all benchmarks."""

    def __init__(self, images: Sequence[Fingerprint]) -> None:
        self._images = images
        self._numbers = {image.sha256: number for number, image in enumerate(images)}
        self._hashed = [number for number, image in enumerate(images) if image.hash]
        self._hashes = np.array([image.hash.bits for image in images if image.hash], np.uint64)
        self._parts = PartIndex([image.features for image in images])

    def find(self, image: Image.Image, sha256: str) -> list[ImageMatch]:
        """The images that ``image`` shows, each once: the plainest evidence counts."""
        if sha256 in self._numbers:
            return [ImageMatch(self._numbers[sha256], "image", 1.0, "the same bytes")]
        phash = perceptual_hash(image)
        near = [*self._near(phash)] if phash else []
        near_numbers = {match.image for match in near}
        return near + [match for match in self._shown(gray_pixels(image)) if match.image not in near_numbers]

    def _near(self, phash: PerceptualHash) -> Iterator[ImageMatch]:
        turns = np.array(phash.turns, np.uint64)
        distances = np.bitwise_count(turns[:, None] ^ self._hashes[None, :])
        turn = distances.argmin(axis=0)
        least = distances.min(axis=0)
        for at in np.flatnonzero(least <= MAX_DISTANCE):
            bits, turned = int(least[at]), TURNS[turn[at]]
            detail = f"{bits} of {BITS} bits differ" + (f", {turned}" if turned else "")
            yield ImageMatch(self._hashed[at], "near_image", 1 - bits / BITS, detail)

    def _shown(self, large: Gray) -> Iterator[ImageMatch]:
        gray = scaled(large, min(1.0, KEPT_SIDE / max(large.shape)))  # the side at which images are kept
        local = features(gray, most=_MOST_FEATURES)
        for shared in self._parts.candidates(local):
            image = self._images[shared.image]
            places = local.places[shared.of_query], image.features.places[shared.of_image]
            overlap = align(gray, image.gray, *places)
            if overlap and overlap.same:
                yield ImageMatch(shared.image, "image_part", overlap.correlation, _overlap(overlap))


def _overlap(alignment: Alignment) -> str:
    return (
        f"{alignment.of_query:.0%} of the training image and {alignment.of_image:.0%} of the benchmark's are the same, "
        f"correlation {alignment.correlation:.3f}, {alignment.n_agreeing} features agree"
    )
