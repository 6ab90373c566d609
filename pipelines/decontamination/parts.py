"""Which pictures have local features in common: an index of signatures over all of a benchmark's pictures.

Signatures that differ in few of 256 bits are the same place seen twice. The first 128 bits are cut into 8 bands; two
that agree in one band are compared in full. About 160 bytes of memory per feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.decontamination.features import SIGNATURE_WORDS, Features, Signatures
from pipelines.duplicates.hamming import Positions, expanded

SAME_PLACE = 56
"""Bits of 256: nine in ten true matches of a recompressed crop stay below, of chance pairs one in several thousand."""

_BANDS = 8
_KEYS = 1 << 16
_CANDIDATES = 5
_MOST_PAIRS = 128
_BATCH = 64


class Correspondence(NamedTuple):
    """Candidate picture ``picture`` and the features that it shares: positions in the query and in the picture."""

    picture: int
    of_query: Positions
    of_picture: Positions


@dataclass(frozen=True, slots=True)
class _Shared:
    query: Positions
    feature: Positions
    distance: NDArray[np.int64]


class PartIndex:
    """The features of many pictures, to be asked which of them share places with another."""

    def __init__(self, pictures: Sequence[Features]) -> None:
        counts = [len(picture) for picture in pictures]
        self._starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._signatures = np.concatenate(
            [np.zeros((0, SIGNATURE_WORDS), np.uint64), *(picture.signatures for picture in pictures)]
        )
        self._keys = [_band_keys(self._signatures, band) for band in range(_BANDS)]
        self._orders = [np.argsort(keys, kind="stable").astype(np.uint32) for keys in self._keys]
        self._offsets = [
            np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=_KEYS))]).astype(np.int64) for keys in self._keys
        ]
        self._keys.clear()

    def candidates(self, query: Features) -> list[Correspondence]:
        """The pictures that share most places with ``query``, the most first."""
        shared = self._shared(query.signatures)
        picture = np.searchsorted(self._starts, shared.feature, side="right") - 1
        order = np.lexsort((shared.feature, shared.distance, shared.query, picture))
        _, firsts = np.unique(np.stack([picture[order], shared.query[order]]), axis=1, return_index=True)
        chosen = order[firsts]  # of every picture, the nearest feature to each of the query's
        weights = np.bincount(picture[chosen], 1 - shared.distance[chosen] / (2 * SAME_PLACE), len(self._starts) - 1)
        best = [int(found) for found in np.argsort(-weights, kind="stable")[:_CANDIDATES] if weights[found] > 0]
        return [self._correspondence(found, picture, shared, chosen) for found in best]

    def _correspondence(self, found: int, picture: Positions, shared: _Shared, chosen: Positions) -> Correspondence:
        of = chosen[picture[chosen] == found]
        of = of[np.argsort(shared.distance[of], kind="stable")[:_MOST_PAIRS]]
        return Correspondence(found, shared.query[of], shared.feature[of] - self._starts[found])

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


def _distances(one: Signatures, other: Signatures) -> Positions:
    distances: Positions = np.bitwise_count(one ^ other).sum(axis=1, dtype=np.int64)
    return distances
