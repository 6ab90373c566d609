"""An index of local features over many images: which of them share places with another image.

Signatures that differ in few of 256 bits are the same place seen twice. The first 128 bits are cut into 8 bands; two
that agree in one band are compared in full. About 64 bytes per feature.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.selection.duplicates.key_index import Positions, expanded, pairs_once
from darkroom.pipelines.selection.duplicates.local_features import SIGNATURE_WORDS, Features, Signatures

SAME_PLACE = 56
"""Bits of 256: nine in ten true matches of a recompressed crop stay below, of chance pairs one in several thousand."""

_BANDS = 8
_KEYS = 1 << 16
_AT_ONCE = 1 << 17
"""Signatures that are compared at once: 10 MB."""


@dataclass(frozen=True, slots=True)
class SharedPlaces:
    """Feature ``query[i]`` of what was asked for and ``feature[i]`` of image ``image[i]`` are the same place."""

    query: Positions
    feature: Positions
    image: Positions
    distance: NDArray[np.int64]


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
        orders, offsets = zip(*(_by_key(_band_keys(self._signatures, band)) for band in range(_BANDS)), strict=True)
        self._orders, self._offsets = np.stack(orders), np.stack(offsets)

    def shared(self, signatures: Signatures) -> SharedPlaces:
        """All pairs of features that are the same place, each once."""
        pairs: list[Positions] = [np.zeros((0, 2), np.int64)]
        pairs += [pair for band in range(_BANDS) for pair in self._in_band(band, signatures)]
        query, feature = pairs_once(*np.concatenate(pairs).T).T
        image = np.searchsorted(self.starts, feature, side="right") - 1
        return SharedPlaces(query, feature, image, _distances(signatures[query], self._signatures[feature]))

    def _in_band(self, band: int, signatures: Signatures) -> Iterator[Positions]:
        keys, offsets = _band_keys(signatures, band), self._offsets[band]
        starts, ends = offsets[keys].astype(np.int64), offsets[keys + 1].astype(np.int64)
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
    distances: Positions = np.bitwise_count(signatures ^ signatures_beside).sum(axis=1, dtype=np.int64)
    return distances
