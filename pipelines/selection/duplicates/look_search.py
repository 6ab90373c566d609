"""Near-duplicates among images: a cheap search proposes pairs, ``same_image`` looks at them.

A pair is proposed when the hashes differ in few bits in any quarter turn, mirrored or not, or when ``MIN_SHARED`` local
features are the same places, in the image or in its mirror image. Proposals and verdicts are of the two images alone:
they depend neither on the order nor on which others are there. The images that stay are indexed in shelves that are
merged as they grow, so a search looks at few of them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from pipelines.selection.duplicates.base import Duplicate
from pipelines.selection.duplicates.images import Hashes, Positions, pairs_once
from pipelines.selection.duplicates.local_features import SIGNATURE_WORDS, Features, Signatures
from pipelines.selection.duplicates.looks import Look
from pipelines.selection.duplicates.part_index import PartIndex, starts_of
from pipelines.selection.duplicates.perceptual import BITS, TURNS
from pipelines.selection.duplicates.same_image import HASH_BITS, ImageComparison, same_image

MIN_SHARED = 3
"""Of unrelated images of the tuning set one pair in forty shares as many."""
_BLOCK = 128
_MOST = 200
"""More than an image has features: hashes that are near are the best evidence."""

Proposals = defaultdict[int, dict[int, int]]
"""Of an image the images that it may be, with the evidence: the more, the likelier."""


Compare = Callable[[int, int], ImageComparison | None]
"""``same_image`` of two positions."""


def near_looks(looks: Sequence[Look], *, compare: Compare | None = None) -> list[Duplicate]:
    """Images that are an earlier one that stays, cut, turned, mirrored, written on or encoded anew.

    ``compare`` may remember what it compared before.
    """

    def compared_anew(row: int, of: int) -> ImageComparison | None:
        return same_image(looks[row], looks[of])

    same = _same(looks, compare or compared_anew)
    return [_duplicate(looks, index, of, compared) for index, of, compared in same]


def _same(looks: Sequence[Look], compare: Compare) -> Iterator[tuple[int, int, ImageComparison]]:
    stays: list[int] = []
    shelves: list[_Shelf] = []
    for start in range(0, len(looks), _BLOCK):
        rows = range(start, min(start + _BLOCK, len(looks)))
        proposals = _by_hash(looks, rows, stays)
        for shelf in [*shelves, _Shelf.of(looks, rows)]:
            for row, of, n_shared in shelf.proposed(looks, rows):
                proposals[row][of] = max(proposals[row].get(of, 0), n_shared)
        gone: set[int] = set()
        for row in rows:
            likeliest = sorted((-evidence, of) for of, evidence in proposals[row].items())
            earlier = [of for _, of in likeliest if of < row and of not in gone]
            match = next(((of, compared) for of in earlier if (compared := compare(row, of))), None)
            if match is not None:
                gone.add(row)
                yield row, *match
        staying = [row for row in rows if row not in gone]
        stays += staying
        shelves = _merged(shelves, _Shelf.of(looks, staying), looks)


def _by_hash(looks: Sequence[Look], rows: Sequence[int], stays: Sequence[int]) -> Proposals:
    proposals: Proposals = defaultdict(dict)
    there = [at for at in (*stays, *rows) if looks[at].hash is not None]
    positions = np.array(there, np.int64)
    turns: Hashes = np.array([hashed.turns for at in there if (hashed := looks[at].hash)], np.uint64).reshape(
        -1, len(TURNS)
    )
    for row in rows:
        if (hashed := looks[row].hash) is not None:
            own = np.array(hashed.turns, np.uint64)
            # the one turned or the other: nearly the same, and the verdict must not depend on the order
            either = np.concatenate([own[:, None] ^ turns[None, :, 0], own[0] ^ turns.T])
            bits = np.bitwise_count(either).min(axis=0)
            near = np.flatnonzero(bits <= HASH_BITS)
            proposals[row] = dict(zip(positions[near].tolist(), (_MOST - bits[near]).tolist(), strict=True))
    return proposals


@dataclass(frozen=True)
class _Shelf:
    """The features of images ``rows`` and of their mirror images."""

    rows: Sequence[int]
    index: PartIndex
    mirrored: PartIndex

    @classmethod
    def of(cls, looks: Sequence[Look], rows: Sequence[int]) -> Self:
        plain, mirrored = ([looks[row].features[side] for row in rows] for side in (0, 1))
        return cls(rows, PartIndex(plain), PartIndex(mirrored))

    def proposed(self, looks: Sequence[Look], rows: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """A row, an image of the shelf with which it shares enough places, in the same sense or mirrored: how many."""
        plain, mirrored = ([looks[row].features[side] for row in rows] for side in (0, 1))
        for queries, index in ((plain, self.index), (plain, self.mirrored), (mirrored, self.index)):
            for query, image, n_shared in _sharing(queries, index):
                yield rows[query], self.rows[image], n_shared


def _sharing(queries: Sequence[Features], index: PartIndex) -> Iterator[tuple[int, int, int]]:
    """A query, an image of the index, and how many places they share; each feature of the two counts once."""
    starts, n_images = starts_of(queries), len(index.starts) - 1
    shared = index.shared(_joined(queries))
    pair = (np.searchsorted(starts, shared.query, side="right") - 1) * n_images + shared.image
    _, which, counts = np.unique(pair, return_inverse=True, return_counts=True)
    many = counts[which] >= MIN_SHARED  # the others cannot share as many different places
    pairs, of_query = _distinct(pair[many], shared.query[many])
    n_shared = np.minimum(of_query, _distinct(pair[many], shared.feature[many])[1])
    for at in np.flatnonzero(n_shared >= MIN_SHARED):
        yield int(pairs[at]) // n_images, int(pairs[at]) % n_images, int(n_shared[at])


def _distinct(pair: Positions, place: Positions) -> tuple[Positions, Positions]:
    """Every pair, in order, and of how many different places it consists."""
    pairs, counts = np.unique(pairs_once(pair, place)[:, 0], return_counts=True)
    return pairs, counts


def _joined(features: Sequence[Features]) -> Signatures:
    return np.concatenate([np.zeros((0, SIGNATURE_WORDS), np.uint64), *(one.signatures for one in features)])


def _merged(shelves: list[_Shelf], new: _Shelf, looks: Sequence[Look]) -> list[_Shelf]:
    """With the new one; shelves of like size become one, so that there are few."""
    *rest, last = [*shelves, new]
    while rest and len(rest[-1].rows) <= len(last.rows):
        last = _Shelf.of(looks, [*rest.pop().rows, *last.rows])
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
