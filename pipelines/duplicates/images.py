"""Near-duplicates among images, by their perceptual hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.duplicates.base import Duplicate
from pipelines.duplicates.hamming import HammingIndex, Hashes, Positions
from pipelines.duplicates.perceptual import TURNS, PictureHash

MAX_DISTANCE = 8
"""Bits of 64 (docs/decontamination.md has what it finds and what it misses)."""

_BLOCK = 8192


def near_images(
    hashes: Sequence[PictureHash | None], *, max_distance: int = MAX_DISTANCE, turned: bool = False
) -> list[Duplicate]:
    """Images that look like an earlier one that stays: the nearest such, of equally near ones the first.

    An image without a hash duplicates nothing. ``turned`` also finds what is rotated by quarters or mirrored. Drawings
    from one template (charts that differ in a bar) are near each other too: compare their questions as well.
    """
    there = np.array([index for index, found in enumerate(hashes) if found is not None], np.int64)
    n_turns = len(TURNS) if turned else 1
    rows = [found.turns[:n_turns] for found in hashes if found is not None]
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
        found = _near_stayed(block, turns[stayed, 0], stayed, max_distance)
        stays = _lead_block(block, start, found, max_distance)
        yield from ((start + row, found[row]) for row in sorted(found))
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
            found = _Nearest(distance, turn, of)
            best[row] = min(best.get(row, found), found)
    return best


def _lead_block(block: NDArray[np.uint64], start: int, found: dict[int, _Nearest], max_distance: int) -> Positions:
    """The rows of the block that stay; ``found`` gets those that are near one of them."""
    stays = np.empty(len(block), np.int64)
    hashes = np.empty(len(block), np.uint64)
    n = 0
    for row, turns in enumerate(block):
        nearest = _nearest(turns, hashes[:n], start + stays[:n])
        if nearest and nearest.distance <= max_distance:
            found[row] = min(found.get(row, nearest), nearest)
        elif row not in found:
            stays[n], hashes[n] = row, turns[0]
            n += 1
    return stays[:n]


def _nearest(turns: Hashes, hashes: Hashes, positions: Positions) -> _Nearest | None:
    if not len(hashes):
        return None
    distances = np.bitwise_count(turns[:, None] ^ hashes[None, :])
    turn, at = divmod(int(distances.argmin()), len(hashes))
    return _Nearest(int(distances[turn, at]), turn, int(positions[at]))
