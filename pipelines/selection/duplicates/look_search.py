"""Near-duplicates among images: a cheap search proposes pairs, ``same_image`` looks at them.

Images meet under keys in sorted files (``key_index.py``), as texts do. A key is 32 of the 256 bits of a local feature's
signature, in the image or in its mirror image; two features that meet make a proposal, and it is the likelier, the more
keys meet. Hashes propose, too, in any quarter turn, mirrored or not: every pair within 8 bits of 64, and of those
within 12 the ones that differ in at most two bits of a third. Keys that many images have tell nothing and are left out,
and the ``MOST_COMPARED`` likeliest are compared: n images cost n log n. In memory are 8 bytes of every image and what a
block of images meets in one of the files.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.selection.duplicates import Duplicate
from darkroom.pipelines.selection.duplicates.key_index import KeyIndex, Keys, Positions, mixed, pairs_once
from darkroom.pipelines.selection.duplicates.looks import BITS, TURNS, Hashes, Look, band_keys, flips
from darkroom.pipelines.selection.duplicates.same_image import HASH_BITS, ImageComparison, same_image

MIN_SHARED = 2
"""Features of the later image. Of unrelated images of the tuning set one pair in a hundred shares as many."""
MOST_COMPARED = 4
"""Of an image's proposals. Of 176 changed forms, charts and plans among others of their templates (held out), 158 are
found, and with 256 instead 167."""
_MOST_PROPOSED = 256
COMMON = 256
"""Images of one file; a key that more have is left out."""
_BLOCK = 128
_WORDS = 8
"""Keys of a signature."""
_KEYS_OF_IMAGE = 2 * 96 * _WORDS
_HASH_BANDS = ((0, 22), (22, 21), (43, 21))
"""Where each begins, and its bits."""
_FLIPS = 2
_MOST = 1 << 8
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
        order = np.lexsort((-evidence, of, rows))
        rows, of, evidence = rows[order], of[order], evidence[order]
        best = np.flatnonzero(np.diff(rows, prepend=-1) | np.diff(of, prepend=-1))
        order = best[np.lexsort((of[best], -evidence[best], rows[best]))]
        return Proposals(rows[order], of[order], evidence[order])

    def only(self, which: Positions | NDArray[np.bool_]) -> "Proposals":
        """Select proposals by their positions."""
        return Proposals(*(column[which] for column in self))

    def likeliest(self, n_most: int) -> "Proposals":
        """At most so many of each row; ``self`` is sorted."""
        return self.only(np.arange(len(self.rows)) - np.searchsorted(self.rows, self.rows) < n_most)


Compare = Callable[[int, int], ImageComparison | None]
"""``same_image`` of two positions."""


def near_looks(
    looks: Sequence[Look],
    *,
    compare: Compare | None = None,
    related: Callable[[int, int], bool] = lambda row, of: True,
    folder: Path | None = None,
) -> list[Duplicate]:
    """Images that are an earlier one that stays, cut, turned, mirrored, written on or encoded anew. ``compare`` may
    remember what it compared before; only ``related`` ones are compared. ``folder``: where the index lies; None: among
    the system's temporary files."""
    same = _same(looks, compare or (lambda row, of: same_image(looks[row], looks[of])), related, folder)
    return [_duplicate(looks, index, of, compared) for index, of, compared in same]


def _same(
    looks: Sequence[Look], compare: Compare, related: Callable[[int, int], bool], folder: Path | None
) -> Iterator[tuple[int, int, ImageComparison]]:
    hashes: Hashes = np.zeros(len(looks), np.uint64)
    earlier = _LookIndex(hashes, folder, n_images=len(looks))
    for start in range(0, len(looks), _BLOCK):
        rows = range(start, min(start + _BLOCK, len(looks)))
        block = _Block.of({row: looks[row] for row in rows})
        hashes[block.hashed] = block.turns[:, 0]
        proposals = earlier.proposed(block)
        if len(rows) > 1:
            of_block = _LookIndex(hashes, folder, n_images=len(rows))
            of_block.add(block)
            proposals = Proposals.joined([proposals, of_block.proposed(block)])
        gone: set[int] = set()
        for row in rows:
            begin, end = np.searchsorted(proposals.rows, (row, row + 1))
            of_row = (of for of in proposals.of[begin:end].tolist() if of not in gone and related(row, of))
            likeliest = islice(of_row, MOST_COMPARED)
            match = next(((of, compared) for of in likeliest if (compared := compare(row, of))), None)
            if match is not None:
                gone.add(row)
                yield row, *match
        earlier.add(block.without(gone))


@dataclass(frozen=True)
class _Block:
    """Images that are searched together, by their numbers. Image ``rows[i]`` has ``keys[i]``, by its feature
    ``features[i]``: those of other images have other numbers. Images ``hashed`` have a hash in ``turns``: (n, 8)."""

    keys: Keys
    rows: Positions
    features: Positions
    hashed: Positions
    turns: Hashes

    @classmethod
    def of(cls, looks: dict[int, Look]) -> Self:
        sides = [(row, side.signatures) for row, look in looks.items() for side in look.features]
        n_keys = [_WORDS * len(signatures) for _, signatures in sides]
        numbers = [row * _MOST + np.arange(len(signatures)) for row, signatures in sides]
        words = np.concatenate([np.zeros((0, _WORDS), np.uint32), *(own.view(np.uint32) for _, own in sides)])
        hashed = {row: look.hash.turns for row, look in looks.items() if look.hash is not None}
        return cls(
            mixed(words.astype(np.uint64), np.arange(_WORDS, dtype=np.uint64)).ravel(),
            np.repeat([row for row, _ in sides], n_keys),
            np.repeat(np.concatenate(numbers), _WORDS),
            np.array(list(hashed), np.int64),
            np.array(list(hashed.values()), np.uint64).reshape(-1, len(TURNS)),
        )

    def without(self, rows: set[int]) -> "_Block":
        stays, has_hash = (np.isin(own, list(rows), invert=True) for own in (self.rows, self.hashed))
        columns = (self.keys[stays], self.rows[stays], self.features[stays])
        return _Block(*columns, self.hashed[has_hash], self.turns[has_hash])


class _LookIndex:
    """Images by the keys of their features and of their hashes. ``hashes``: of all images, by number."""

    def __init__(self, hashes: Hashes, folder: Path | None, *, n_images: int) -> None:
        self._hashes = hashes
        self._by_features = KeyIndex(folder, n_keys=_KEYS_OF_IMAGE * n_images)
        self._by_hash = KeyIndex(folder, n_keys=len(_HASH_BANDS) * n_images)

    def add(self, block: _Block) -> None:
        order = np.lexsort((block.rows, block.keys))
        keys, rows = block.keys[order], block.rows[order]
        once = np.ones(len(keys), np.bool_)  # an image of one pattern has a key again and again
        once[1:] = (keys[1:] != keys[:-1]) | (rows[1:] != rows[:-1])
        self._by_features.add(keys[once], rows[once].astype(np.uint32))
        bands = [_hash_keys(block.turns[:, 0], number) for number in range(len(_HASH_BANDS))]
        self._by_hash.add(np.concatenate(bands), np.tile(block.hashed, len(bands)).astype(np.uint32))

    def proposed(self, block: _Block) -> Proposals:
        """For every image of the block the likeliest before it."""
        best = Proposals.joined([])
        for proposals in chain(self._near(block), self._sharing(block)):
            before = proposals.only(proposals.of < proposals.rows)
            best = Proposals.joined([best, before]).likeliest(_MOST_PROPOSED)
        return best

    def _sharing(self, block: _Block) -> Iterator[Proposals]:
        """Images in which enough features of one of the block are met."""
        for matches in self._by_features.find_each(block.keys, most=COMMON):
            items = matches.item.astype(np.int64)
            feature, of, _ = pairs_once(block.features[matches.key], items)
            _, _, n_features = pairs_once(feature // _MOST, of)
            by_words = Proposals(*pairs_once(block.rows[matches.key], items))
            yield by_words.only(n_features >= MIN_SHARED)

    def _near(self, block: _Block) -> Iterator[Proposals]:
        """Images whose hash is near that of one of the block, as it is or turned."""
        for number, (_, width) in enumerate(_HASH_BANDS):
            patterns = np.array(list(flips(width, _FLIPS)), np.uint32)
            keys = _hash_keys(block.turns.ravel(), number, patterns)
            n_of_row = len(TURNS) * len(patterns)
            for matches in self._by_hash.find_each(keys.ravel(), most=COMMON):
                row, of, _ = pairs_once(matches.key // n_of_row, matches.item.astype(np.int64))
                bits = np.bitwise_count(block.turns[row] ^ self._hashes[of, None]).min(axis=1).astype(np.int64)
                near = bits <= HASH_BITS
                yield Proposals(block.hashed[row[near]], of[near], _MOST - bits[near])


def _hash_keys(hashes: Hashes, number: int, patterns: NDArray[np.uint32] | None = None) -> Keys:
    """Keys of hashes in one band; with bits flipped, by the ``patterns``: (hashes, patterns)."""
    band = band_keys(hashes, *_HASH_BANDS[number])
    probes = band if patterns is None else band[:, None] ^ patterns
    return mixed(probes.astype(np.uint64), np.array(number, np.uint64))


def _duplicate(looks: Sequence[Look], index: int, of: int, compared: ImageComparison) -> Duplicate:
    """``distance`` in bits of the hashes, all 64 without one."""
    hashed, hashed_of = looks[index].hash, looks[of].hash
    distance = BITS
    turn = "mirrored" if compared.mirrored else ""
    if hashed is not None and hashed_of is not None:
        distance, nearest = min(((bits ^ hashed_of.bits).bit_count(), turn) for turn, bits in enumerate(hashed.turns))
        turn = TURNS[nearest] if distance <= HASH_BITS else turn
    return Duplicate(index, of, "near_image", float(distance), turn)
