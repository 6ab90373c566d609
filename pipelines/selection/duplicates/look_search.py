"""Near-duplicates among images: a cheap search proposes pairs, ``same_image`` looks at them.

A pair is proposed when the hashes differ in few bits in any quarter turn, mirrored or not, or when ``MIN_SHARED`` local
features are the same places, in the image or in its mirror image. Proposals and verdicts are of the two images alone:
they depend neither on the order nor on which others are there, but that of more than ``MOST_COMPARED`` earlier images
only the likeliest are compared.

The features of images that stay are indexed in shelves that are merged as they grow. In memory are a hash of every
image (64 bytes) and one shelf at a time; the shelves lie on disk where there is a folder for them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pipelines.selection.duplicates.base import Duplicate
from pipelines.selection.duplicates.images import Hashes, pairs_once
from pipelines.selection.duplicates.key_index import Positions
from pipelines.selection.duplicates.local_features import SIGNATURE_WORDS, Features, Signatures
from pipelines.selection.duplicates.looks import Look
from pipelines.selection.duplicates.part_index import PartIndex, starts_of
from pipelines.selection.duplicates.perceptual import BITS, TURNS
from pipelines.selection.duplicates.same_image import HASH_BITS, ImageComparison, same_image

MIN_SHARED = 3
"""Of unrelated images of the tuning set one pair in forty shares as many."""
MOST_COMPARED = 256
_BLOCK = 128
_LARGEST_SHELF = 8192
"""Images: 100 MB, which a search maps at a time."""
_HASHES_AT_ONCE = 1 << 14
_MOST = 200
"""More than an image has features: hashes that are near are the best evidence."""


class Proposals(NamedTuple):
    """Image ``rows[i]`` may be image ``of[i]``; the more ``evidence``, the likelier."""

    rows: Positions
    of: Positions
    evidence: Positions

    @staticmethod
    def joined(parts: Sequence["Proposals"]) -> "Proposals":
        """All of them, each pair once, with its best evidence; of a row the likeliest first."""
        none = np.zeros(0, np.int64)
        rows, of, evidence = (np.concatenate(columns) for columns in zip((none,) * 3, *parts, strict=True))
        order = np.lexsort((of, -evidence, rows))
        pairs = Proposals(rows[order], of[order], evidence[order])
        seen = np.unique(np.stack([pairs.rows, pairs.of]), axis=1, return_index=True)[1]
        return pairs.only(np.sort(seen))

    def only(self, which: Positions | NDArray[np.bool_]) -> "Proposals":
        """Those at some places."""
        return Proposals(*(column[which] for column in self))

    def likeliest(self, n_most: int) -> "Proposals":
        """At most so many of each row; ``self`` is sorted."""
        starts = np.searchsorted(self.rows, self.rows)
        return self.only(np.arange(len(self.rows)) - starts < n_most)


Compare = Callable[[int, int], ImageComparison | None]
"""``same_image`` of two positions."""


def near_looks(looks: Sequence[Look], *, compare: Compare | None = None, folder: Path | None = None) -> list[Duplicate]:
    """Images that are an earlier one that stays, cut, turned, mirrored, written on or encoded anew.

    ``compare`` may remember what it compared before. ``folder``: where the index lies; None: in memory.
    """

    def compared_anew(row: int, of: int) -> ImageComparison | None:
        return same_image(looks[row], looks[of])

    same = _same(looks, compare or compared_anew, folder)
    return [_duplicate(looks, index, of, compared) for index, of, compared in same]


def _same(looks: Sequence[Look], compare: Compare, folder: Path | None) -> Iterator[tuple[int, int, ImageComparison]]:
    hashes = _StayingHashes(len(looks))
    shelves: list[_Shelf] = []
    for start in range(0, len(looks), _BLOCK):
        rows = range(start, min(start + _BLOCK, len(looks)))
        block = {row: looks[row] for row in rows}
        proposals = _proposals(block, hashes, shelves)
        gone: set[int] = set()
        for row in rows:
            begin, end = np.searchsorted(proposals.rows, (row, row + 1))
            earlier = [of for of in proposals.of[begin:end].tolist() if of not in gone]
            match = next(((of, compared) for of in earlier if (compared := compare(row, of))), None)
            if match is not None:
                gone.add(row)
                yield row, *match
        staying = [row for row in rows if row not in gone]
        hashes.add({row: block[row] for row in staying})
        shelves = _merged(shelves, _Shelf.of(looks, staying, folder), looks, folder)


def _proposals(block: dict[int, Look], hashes: "_StayingHashes", shelves: Sequence["_Shelf"]) -> Proposals:
    """What the rows of a block may be, of earlier images and of earlier ones in the block."""
    rows = list(block)
    best = Proposals.joined(list(hashes.near(block))).likeliest(MOST_COMPARED)
    for shelf in shelves:
        best = Proposals.joined([best, *shelf.proposed(block)]).likeliest(MOST_COMPARED)
    own_hashes = _StayingHashes(len(rows))
    own_hashes.add(block)
    own_shelf = _Shelf(rows, PartIndex(_side(block, 0)), PartIndex(_side(block, 1)))
    own = Proposals.joined([*own_hashes.near(block), *own_shelf.proposed(block)])
    return Proposals.joined([best, own.only(own.of < own.rows)])


class _StayingHashes:
    """The hashes of images, 64 bytes each."""

    def __init__(self, n_most: int) -> None:
        self._positions = np.empty(n_most, np.int64)
        self._turns: Hashes = np.empty((len(TURNS), n_most), np.uint64)
        self._n = 0

    def add(self, looks: dict[int, Look]) -> None:
        hashed = {row: look.hash.turns for row, look in looks.items() if look.hash is not None}
        end = self._n + len(hashed)
        self._positions[self._n : end] = list(hashed)
        self._turns[:, self._n : end] = np.array(list(hashed.values()), np.uint64).reshape(-1, len(TURNS)).T
        self._n = end

    def near(self, looks: dict[int, Look]) -> Iterator[Proposals]:
        """Images whose hash, or a turned one, is near one of the ``looks``."""
        hashed = {row: look.hash.turns for row, look in looks.items() if look.hash is not None}
        for begin in range(0, self._n, _HASHES_AT_ONCE):
            end = min(begin + _HASHES_AT_ONCE, self._n)
            turns, positions = self._turns[:, begin:end], self._positions[begin:end]
            for row, own_turns in hashed.items():
                own = np.array(own_turns, np.uint64)
                # the one turned or the other: nearly the same, and the verdict must not depend on the order
                bits = np.minimum(
                    np.bitwise_count(own[:, None] ^ turns[0]).min(axis=0),
                    np.bitwise_count(own[0] ^ turns).min(axis=0),
                )
                near = np.flatnonzero(bits <= HASH_BITS)
                if len(near):
                    evidence = _MOST - bits[near].astype(np.int64)
                    yield Proposals(np.full(len(near), row), positions[near], evidence)


@dataclass(frozen=True)
class _Shelf:
    """The features of images ``rows`` and of their mirror images."""

    rows: Sequence[int]
    index: PartIndex
    mirrored: PartIndex

    @classmethod
    def of(cls, looks: Sequence[Look], rows: Sequence[int], folder: Path | None) -> Self:
        plain, mirrored = (PartIndex((looks[row].features[side] for row in rows), on_disk=folder) for side in (0, 1))
        return cls(rows, plain, mirrored)

    def proposed(self, block: dict[int, Look]) -> Iterator[Proposals]:
        """The rows of a block with images of the shelf that share enough places, in the same sense or mirrored."""
        rows, of = np.array(list(block), np.int64), np.array(self.rows, np.int64)
        plain, mirrored = _side(block, 0), _side(block, 1)
        for queries, index in ((plain, self.index), (plain, self.mirrored), (mirrored, self.index)):
            query, image, n_shared = _sharing(queries, index)
            yield Proposals(rows[query], of[image], n_shared)


def _side(block: dict[int, Look], side: int) -> list[Features]:
    return [look.features[side] for look in block.values()]


def _sharing(queries: Sequence[Features], index: PartIndex) -> tuple[Positions, Positions, Positions]:
    """Queries, images of the index, and how many places they share; each feature of the two counts once."""
    starts, n_images = starts_of(queries), max(1, len(index.starts) - 1)
    shared = index.shared(_joined(queries))
    pair = (np.searchsorted(starts, shared.query, side="right") - 1) * n_images + shared.image
    _, which, counts = np.unique(pair, return_inverse=True, return_counts=True)
    many = counts[which] >= MIN_SHARED  # the others cannot share as many different places
    pairs, of_query = _distinct(pair[many], shared.query[many])
    n_shared = np.minimum(of_query, _distinct(pair[many], shared.feature[many])[1])
    enough = n_shared >= MIN_SHARED
    return pairs[enough] // n_images, pairs[enough] % n_images, n_shared[enough]


def _distinct(pair: Positions, place: Positions) -> tuple[Positions, Positions]:
    """Every pair, in order, and of how many different places it consists."""
    pairs, counts = np.unique(pairs_once(pair, place)[:, 0], return_counts=True)
    return pairs, counts


def _joined(features: Sequence[Features]) -> Signatures:
    return np.concatenate([np.zeros((0, SIGNATURE_WORDS), np.uint64), *(one.signatures for one in features)])


def _merged(shelves: list[_Shelf], new: _Shelf, looks: Sequence[Look], folder: Path | None) -> list[_Shelf]:
    """With the new one; shelves of like size become one, so that there are few, up to the largest."""
    *rest, last = [*shelves, new]
    while rest and len(rest[-1].rows) <= len(last.rows) and 2 * len(last.rows) <= _LARGEST_SHELF:
        last = _Shelf.of(looks, [*rest.pop().rows, *last.rows], folder)
    return [*rest, last]


def _duplicate(looks: Sequence[Look], index: int, of: int, compared: ImageComparison) -> Duplicate:
    """``distance`` in bits of the hashes, all 64 without one."""
    hashed, hashed_of = looks[index].hash, looks[of].hash
    if hashed is None or hashed_of is None:
        return Duplicate(index, of, "near_image", float(BITS), "mirrored" if compared.mirrored else "")
    bits, turn = min(((bits ^ hashed_of.bits).bit_count(), turn) for turn, bits in enumerate(hashed.turns))
    if bits > HASH_BITS:
        return Duplicate(index, of, "near_image", float(bits), "mirrored" if compared.mirrored else "")
    return Duplicate(index, of, "near_image", float(bits), TURNS[turn])
