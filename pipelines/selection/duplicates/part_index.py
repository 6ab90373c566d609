"""An index of local features over many images: which of them share places with another image.

Signatures that differ in few of 256 bits are the same place seen twice. The first 128 bits are cut into 8 bands; two
that agree in one band are compared in full. About 64 bytes of memory per feature.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.selection.duplicates.images import Positions, expanded, pairs_once
from pipelines.selection.duplicates.local_features import SIGNATURE_WORDS, Features, Signatures

SAME_PLACE = 56
"""Bits of 256: nine in ten true matches of a recompressed crop stay below, of chance pairs one in several thousand."""

_BANDS = 8
_KEYS = 1 << 16
_BATCH = 64


@dataclass(frozen=True, slots=True)
class SharedPlaces:
    """Feature ``query[i]`` of what was asked for and ``feature[i]`` of image ``image[i]`` are the same place."""

    query: Positions
    feature: Positions
    image: Positions
    distance: NDArray[np.int64]


class PartIndex:
    """The features of many images, to be asked which of them share places with another."""

    def __init__(self, images: Sequence[Features]) -> None:
        self.starts = starts_of(images)
        self._signatures = np.concatenate(
            [np.zeros((0, SIGNATURE_WORDS), np.uint64), *(image.signatures for image in images)]
        )
        keys_by_band = [_band_keys(self._signatures, band) for band in range(_BANDS)]
        self._orders = [np.argsort(keys, kind="stable").astype(np.uint32) for keys in keys_by_band]
        self._offsets = [
            np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=_KEYS))]).astype(np.int64)
            for keys in keys_by_band
        ]

    def shared(self, signatures: Signatures) -> SharedPlaces:
        """All pairs of features that are the same place, each once."""
        pairs: list[Positions] = [np.zeros((0, 2), np.int64)]
        for start in range(0, len(signatures), _BATCH):
            batch = signatures[start : start + _BATCH]
            offset = np.array([start, 0])
            pairs += [self._in_band(band, batch) + offset for band in range(_BANDS)]
        query, feature = pairs_once(*np.concatenate(pairs).T).T
        image = np.searchsorted(self.starts, feature, side="right") - 1
        return SharedPlaces(query, feature, image, _distances(signatures[query], self._signatures[feature]))

    def _in_band(self, band: int, signatures: Signatures) -> Positions:
        keys, offsets = _band_keys(signatures, band), self._offsets[band]
        query, at = expanded(offsets[keys], offsets[keys + 1])
        feature = self._orders[band][at].astype(np.int64)
        same = _distances(signatures[query], self._signatures[feature]) <= SAME_PLACE
        return np.stack([query[same], feature[same]], axis=1)


def starts_of(images: Sequence[Features]) -> Positions:
    """Where every image's features begin among all, and where the last ones end."""
    return np.concatenate([[0], np.cumsum([len(image) for image in images])]).astype(np.int64)


def _band_keys(signatures: Signatures, band: int) -> Positions:
    return ((signatures[:, band // 4] >> np.uint64(16 * (band % 4))) & np.uint64(_KEYS - 1)).astype(np.int64)


def _distances(signatures: Signatures, signatures_beside: Signatures) -> Positions:
    distances: Positions = np.bitwise_count(signatures ^ signatures_beside).sum(axis=1, dtype=np.int64)
    return distances
