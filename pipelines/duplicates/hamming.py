"""All pairs of 64-bit hashes within a Hamming distance, without comparing all pairs (Norouzi et al., 2012).

The bits are cut into bands: two hashes that differ in at most d bits differ in at most d / bands bits in one of them.
So every band is looked up with all patterns of that few flipped bits. Nothing within the distance is missed; how many
bands are best follows from the number of hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from math import ceil, comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.duplicates.perceptual import BITS

Hashes = NDArray[np.uint64]
Positions = NDArray[np.int64]
Keys = NDArray[np.uint32]

_WIDEST = 22
_CANDIDATE_COST = 3.0
"""Comparing one candidate costs as much as looking up so many keys."""


class Pairs(NamedTuple):
    """Query ``queries[i]`` and indexed hash ``hashes[i]`` differ in ``distances[i]`` bits."""

    queries: Positions
    hashes: Positions
    distances: NDArray[np.uint8]


class _Band(NamedTuple):
    """``keys`` of the indexed hashes, sorted, and where they come from; ``is_there`` tells for every possible key.

    Most probes of a wide band find nothing: a table of a byte per key answers them from the processor's cache.
    """

    shift: int
    width: int
    keys: Keys
    order: Positions
    is_there: NDArray[np.bool_]

    def find(self, probes: Keys) -> tuple[Positions, Positions]:
        """Every probe k and every indexed hash with its key: (k, position of the hash)."""
        there = np.flatnonzero(self.is_there[probes])
        found = probes[there]
        starts, ends = (np.searchsorted(self.keys, found, side) for side in ("left", "right"))
        which, places = expanded(starts, ends)
        return there[which], self.order[places]


class HammingIndex:
    """Hashes that can be asked for all within ``max_distance`` (0..32) bits of others."""

    def __init__(self, hashes: Hashes, *, max_distance: int) -> None:
        if not 0 <= max_distance <= BITS // 2:
            raise ValueError(f"max_distance is 0 to {BITS // 2} bits, found {max_distance}")
        self._hashes, self._max_distance = hashes, max_distance
        n_bands = _best_bands(len(hashes), max_distance)
        edges = [BITS * k // n_bands for k in range(n_bands + 1)]
        self._bands = [_band(hashes, low, high - low) for low, high in pairwise(edges)]
        self._flips_per_band = max_distance // n_bands

    def near(self, queries: Hashes) -> Pairs:
        """Every pair within the distance, by query and then by indexed hash."""
        parts = [part for band in self._bands for part in self._candidates(band, queries)]
        joined = np.unique(np.concatenate([np.zeros((0, 2), np.int64), *parts]), axis=0)
        query, found = joined[:, 0], joined[:, 1]
        return Pairs(query, found, np.bitwise_count(queries[query] ^ self._hashes[found]))

    def _candidates(self, band: _Band, queries: Hashes) -> Iterator[Positions]:
        keys = _keys(queries, band.shift, band.width)
        for flip in _flips(band.width, self._flips_per_band):
            query, hashes = band.find(keys ^ np.uint32(flip))
            near = np.bitwise_count(queries[query] ^ self._hashes[hashes]) <= self._max_distance
            yield np.stack([query[near], hashes[near]], axis=1)


def expanded(starts: Positions, ends: Positions) -> tuple[Positions, Positions]:
    """Ranges written out: for every range k and every position of it, (k, position)."""
    counts = ends - starts
    which = np.repeat(np.arange(len(counts)), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return which, starts[which] + np.arange(len(which)) - before


def _keys(hashes: Hashes, shift: int, width: int) -> Keys:
    return ((hashes >> np.uint64(shift)) & np.uint64((1 << width) - 1)).astype(np.uint32)


def _band(hashes: Hashes, shift: int, width: int) -> _Band:
    keys = _keys(hashes, shift, width)
    order = np.argsort(keys, kind="stable")
    is_there = np.zeros(1 << width, np.bool_)
    is_there[keys] = True
    return _Band(shift, width, keys[order], order, is_there)


def _flips(width: int, most: int) -> Iterator[int]:
    for n in range(most + 1):
        yield from (sum(1 << bit for bit in bits) for bits in combinations(range(width), n))


def _best_bands(n: int, max_distance: int) -> int:
    return min(range(ceil(BITS / _WIDEST), 9), key=lambda bands: _cost(bands, n, max_distance))


def _cost(bands: int, n: int, max_distance: int) -> float:
    width = BITS / bands
    probes = bands * sum(comb(ceil(width), flipped) for flipped in range(max_distance // bands + 1))
    return probes * (1 + _CANDIDATE_COST * n / 2**width)
