"""Near-duplicates among images, by their perceptual hashes.

All pairs of 64-bit hashes within a Hamming distance are found without comparing all pairs (Norouzi et al., 2012). The
bits are cut into bands: two hashes that differ in at most d bits differ in at most d / bands bits in one of them. So
every band is looked up with all patterns of that few flipped bits. Nothing within the distance is missed; how many
bands are best follows from the number of hashes.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations, pairwise
from math import ceil, comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.selection.duplicates.base import Duplicate, repeated
from darkroom.pipelines.selection.duplicates.key_index import Positions, expanded
from darkroom.pipelines.selection.duplicates.perceptual import BITS, TURNS, PerceptualHash

Hashes = NDArray[np.uint64]
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
        hits = probes[there]
        starts, ends = (np.searchsorted(self.keys, hits, side) for side in ("left", "right"))
        which, places = expanded(starts, ends)
        return there[which], self.order[places]


class HammingIndex:
    """Hashes that can be asked for all within ``max_distance`` (0..32) bits of others."""

    def __init__(self, hashes: Hashes, *, max_distance: int) -> None:
        if not 0 <= max_distance <= BITS // 2:
            raise ValueError(f"max_distance is 0 to {BITS // 2} bits, found {max_distance}")
        self._hashes, self._max_distance = hashes, max_distance
        cost = partial(_cost, n=len(hashes), max_distance=max_distance)
        n_bands = min(range(ceil(BITS / _WIDEST), 9), key=cost)
        edges = [BITS * k // n_bands for k in range(n_bands + 1)]
        self._bands = [_band(hashes, low, high - low) for low, high in pairwise(edges)]
        self._flips_per_band = max_distance // n_bands

    def near(self, queries: Hashes) -> Pairs:
        """Every pair within the distance, by query and then by indexed hash."""
        parts = [part for band in self._bands for part in self._candidates(band, queries)]
        query, indexed = pairs_once(*np.concatenate([np.zeros((0, 2), np.int64), *parts]).T).T
        return Pairs(query, indexed, np.bitwise_count(queries[query] ^ self._hashes[indexed]))

    def _candidates(self, band: _Band, queries: Hashes) -> Iterator[Positions]:
        keys = band_keys(queries, band.shift, band.width)
        for flip in flips(band.width, self._flips_per_band):
            query, hashes = band.find(keys ^ np.uint32(flip))
            near = np.bitwise_count(queries[query] ^ self._hashes[hashes]) <= self._max_distance
            yield np.stack([query[near], hashes[near]], axis=1)


def pairs_once(first: Positions, second: Positions) -> Positions:
    """(n, 2): every pair of numbers once, in order. Their largest, multiplied, must be below 2 ** 63."""
    width = int(second.max(initial=0)) + 1
    once = np.unique(first * width + second)  # ten times as fast as ``np.unique`` of rows
    return np.stack(np.divmod(once, width), axis=1)


def band_keys(hashes: Hashes, shift: int, width: int) -> Keys:
    """``width`` bits of every hash, from bit ``shift`` on."""
    return ((hashes >> np.uint64(shift)) & np.uint64((1 << width) - 1)).astype(np.uint32)


def _band(hashes: Hashes, shift: int, width: int) -> _Band:
    keys = band_keys(hashes, shift, width)
    order = np.argsort(keys, kind="stable")
    is_there = np.zeros(1 << width, np.bool_)
    is_there[keys] = True
    return _Band(shift, width, keys[order], order, is_there)


def flips(width: int, most: int) -> Iterator[int]:
    """Every pattern of at most so many of ``width`` bits."""
    for n in range(most + 1):
        yield from (sum(1 << bit for bit in bits) for bits in combinations(range(width), n))


def _cost(bands: int, n: int, max_distance: int) -> float:
    width = BITS / bands
    probes = bands * sum(comb(ceil(width), flipped) for flipped in range(max_distance // bands + 1))
    return probes * (1 + _CANDIDATE_COST * n / 2**width)


MAX_DISTANCE = 8
"""Bits of 64 (docs/duplicates.md has what it finds and what it misses)."""

_BLOCK = 8192


def exact_images(sha256s: Iterable[str]) -> list[Duplicate]:
    """Images whose bytes came before, by the sha256 of their bytes (``ImageRef.sha256``)."""
    return repeated(sha256s, "exact_image")


def near_images(
    hashes: Sequence[PerceptualHash | None], *, max_distance: int = MAX_DISTANCE, turned: bool = False
) -> list[Duplicate]:
    """Images that look like an earlier one that stays: the nearest such, of equally near ones the first.

    An image without a hash duplicates nothing. ``turned`` also finds what is rotated by quarters or mirrored. Drawings
    from one template (charts that differ in a bar) are near each other too: compare their questions as well.
    """
    there = np.array([index for index, phash in enumerate(hashes) if phash is not None], np.int64)
    n_turns = len(TURNS) if turned else 1
    rows = [phash.turns[:n_turns] for phash in hashes if phash is not None]
    turns = np.array(rows, np.uint64).reshape(len(rows), n_turns)
    return [
        Duplicate(int(there[row]), int(there[near.of]), "near_image", float(near.distance), TURNS[near.turn])
        for row, near in _led(turns, max_distance)
    ]


class _Nearest(NamedTuple):
    """Compared in this order: fewest bits, least turned, first."""

    distance: int
    turn: int
    of: int


def _led(turns: NDArray[np.uint64], max_distance: int) -> Iterator[tuple[int, _Nearest]]:
    """Block by block: against all that stayed before, by index; within the block, by comparing."""
    stayed: Positions = np.zeros(0, np.int64)
    for start in range(0, len(turns), _BLOCK):
        block = turns[start : start + _BLOCK]
        nearest = _near_stayed(block, turns[stayed, 0], stayed, max_distance)
        stays = _lead_block(block, start, nearest, max_distance)
        yield from ((start + row, nearest[row]) for row in sorted(nearest))
        stayed = np.concatenate([stayed, start + stays])


def _near_stayed(
    block: NDArray[np.uint64], hashes: Hashes, positions: Positions, max_distance: int
) -> dict[int, _Nearest]:
    """For every row of the block that is near one of ``hashes``, the nearest."""
    best: dict[int, _Nearest] = {}
    index = HammingIndex(hashes, max_distance=max_distance)
    for turn in range(block.shape[1] if len(hashes) else 0):
        pairs = index.near(block[:, turn])
        columns = (pairs.queries, pairs.distances, positions[pairs.hashes])
        for row, distance, of in zip(*(column.tolist() for column in columns), strict=True):
            candidate = _Nearest(distance, turn, of)
            best[row] = min(best.get(row, candidate), candidate)
    return best


def _lead_block(block: NDArray[np.uint64], start: int, duplicates: dict[int, _Nearest], max_distance: int) -> Positions:
    """The rows of the block that stay; ``duplicates`` gets those that are near one of them."""
    stays = np.empty(len(block), np.int64)
    hashes = np.empty(len(block), np.uint64)
    n = 0
    for row, turns in enumerate(block):
        nearest = _nearest(turns, hashes[:n], start + stays[:n])
        if nearest and nearest.distance <= max_distance:
            duplicates[row] = min(duplicates.get(row, nearest), nearest)
        elif row not in duplicates:
            stays[n], hashes[n] = row, turns[0]
            n += 1
    return stays[:n]


def _nearest(turns: Hashes, hashes: Hashes, positions: Positions) -> _Nearest | None:
    if not len(hashes):
        return None
    distances = np.bitwise_count(turns[:, None] ^ hashes[None, :])
    turn, at = divmod(int(distances.argmin()), len(hashes))
    return _Nearest(int(distances[turn, at]), turn, int(positions[at]))
