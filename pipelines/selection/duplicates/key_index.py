"""An index on disk of 64-bit keys: the earlier items with one of these keys.

Keys lie sorted in shelves, files without a name that go with the index. Added keys become a shelf; shelves of like size
are merged, so that there are few: n items cost n log n. In memory are a byte of 256 of every shelf, some bits of every
key, the keys that are looked up and the items found. A search maps the files, reads a few pages for a key, and releases
them: mapped pages count as memory of this process until then.
"""

import mmap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.storage.row_files import scratch_file

Keys = NDArray[np.uint64]
Items = NDArray[np.uint32]
Positions = NDArray[np.int64]

_STEPS = [1 << bit for bit in reversed(range(11))]
_STRIDE = 1 + sum(_STEPS)
"""Of so many keys of a shelf one is in memory: a key that is looked up reads what lies between two of these."""
_PIECE = 128
"""Strides of a shelf that are merged at a time: 6 MB in memory."""
_AT_ONCE = 256
"""Keys that are looked up together: each maps up to 64 kB of keys, and as many of items if it is there."""
_BITS_OF_KEY = 16
_MOST_BITS = 1 << 28
"""32 MB: of 25 million keys one in eleven others is looked for in vain."""


class FoundKeys(NamedTuple):
    """Key number ``key[i]`` of those looked up is a key of item ``item[i]``."""

    key: Positions
    item: Items


class KeyIndex:
    """Items by their keys. ``folder``: where the files lie; None: where the system keeps temporary ones. ``n_keys``:
    about how many will be added; some bits for each tell of most others that they are not there."""

    def __init__(self, folder: Path | None = None, *, n_keys: int) -> None:
        self._folder = folder
        self._shelves: list[_KeyShelf] = []
        n_bits = min(_MOST_BITS, 1 << (_BITS_OF_KEY * max(1, n_keys) - 1).bit_length())
        self._there = np.zeros(n_bits // 8, np.uint8)  # no memory before something is added

    def add(self, keys: Keys, items: Items) -> None:
        """``items[i]`` has ``keys[i]``; an item may have many keys."""
        np.bitwise_or.at(self._there, self._byte_of(keys), _bit_of(keys))
        order = np.argsort(keys, kind="stable")
        new = _KeyShelf(self._folder, iter([(keys[order], items[order])]))
        while self._shelves and len(self._shelves[-1]) <= 2 * len(new):
            new = _KeyShelf(self._folder, _merged(self._shelves.pop(), new))
        self._shelves.append(new)

    def find_each(self, keys: Keys, *, most: int) -> Iterator[FoundKeys]:
        """Find items with one of the ``keys``, shelf by shelf; keys with more than ``most`` items there are left out.
        Items that were added together lie in one shelf."""
        order = np.flatnonzero(self._there[self._byte_of(keys)] & _bit_of(keys))
        order = order[np.argsort(keys[order], kind="stable")]  # neighbours look at the same pages
        for shelf in self._shelves:
            matches = shelf.find(keys[order], most)
            yield FoundKeys(order[matches.key], matches.item)

    def _byte_of(self, keys: Keys) -> Keys:
        return (keys >> np.uint64(3)) & np.uint64(len(self._there) - 1)


class _KeyShelf:
    """Sorted keys with their items, from pieces that follow one another."""

    def __init__(self, folder: Path | None, pieces: Iterator[tuple[Keys, Items]]) -> None:
        self._keys, self._items = MappedFile(folder), MappedFile(folder)
        self._length = 0
        signposts: list[Keys] = [np.zeros(0, np.uint64)]
        for keys, items in pieces:
            self._keys.append(keys)
            self._items.append(items)
            signposts.append(keys[-self._length % _STRIDE :: _STRIDE].copy())
            self._length += len(keys)
        self._signposts: Keys = np.concatenate(signposts)

    def __len__(self) -> int:
        return self._length

    def find(self, keys: Keys, most: int) -> FoundKeys:
        """Look up sorted keys in small batches, so that mapped pages are released between them."""
        begins = range(0, len(keys), _AT_ONCE)
        matches = [self._find(keys[begin : begin + _AT_ONCE], most) for begin in begins]
        which = [each.key + begin for begin, each in zip(begins, matches, strict=True)]
        items = [np.zeros(0, np.uint32), *(each.item for each in matches)]
        return FoundKeys(np.concatenate([np.zeros(0, np.int64), *which]), np.concatenate(items))

    def _find(self, keys: Keys, most: int) -> FoundKeys:
        own = self._keys.array(np.uint64)
        starts = self._places(keys, "left")
        there = np.flatnonzero(own[np.minimum(starts, len(own) - 1)] == keys) if len(own) else starts[:0]
        ends = self._places(keys[there], "right")
        few = ends - starts[there] <= most
        there, ends = there[few], ends[few]
        which, places = expanded(starts[there], ends)
        items = self._items.array(np.uint32)[places]
        self.let_go()
        return FoundKeys(there[which], items)

    def _places(self, keys: Keys, side: Literal["left", "right"]) -> Positions:
        """``np.searchsorted`` by way of the signposts: alone it would read pages all over the file for each key."""
        if not len(self):
            return np.zeros(len(keys), np.int64)
        own = self._keys.array(np.uint64)
        passes = np.less if side == "left" else np.less_equal
        places = np.maximum(_STRIDE * (np.searchsorted(self._signposts, keys, side) - 1) + 1, 0)
        for step in _STEPS:
            places += step * passes(own[np.minimum(places + step - 1, len(self) - 1)], keys)
        return np.asarray(np.minimum(places, len(self)), np.int64)

    def cuts(self, borders: Keys) -> Iterator[int]:
        """Positions at which the keys from each of the ``borders`` on begin; before them 0, after them the end."""
        yield 0
        for border in borders:
            yield int(self._places(border[None], "left")[0])
        yield len(self)

    def borders(self) -> Keys:
        """Keys that cut the shelf into pieces."""
        return np.asarray(np.unique(self._signposts[_PIECE::_PIECE]), np.uint64)

    def piece(self, begin: int, end: int) -> tuple[Keys, Items]:
        return self._keys.array(np.uint64)[begin:end].copy(), self._items.array(np.uint32)[begin:end].copy()

    def let_go(self) -> None:
        self._keys.let_go()
        self._items.let_go()


def mixed(keys: Keys, others: Keys) -> Keys:
    """64 bits of both (the finaliser of splitmix64; Steele et al., 2014)."""
    bits = keys * np.uint64(0x9E3779B97F4A7C15) + others
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)), np.uint64)


def _bit_of(keys: Keys) -> NDArray[np.uint8]:
    return np.left_shift(np.uint8(1), (keys & np.uint64(7)).astype(np.uint8), dtype=np.uint8)


def expanded(starts: Positions, ends: Positions) -> tuple[Positions, Positions]:
    """Ranges written out: for every range k and every position of it, (k, position)."""
    counts = ends - starts
    which = np.repeat(np.arange(len(counts)), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return which, starts[which] + np.arange(len(which)) - before


def _merged(first: _KeyShelf, second: _KeyShelf) -> Iterator[tuple[Keys, Items]]:
    borders = first.borders()
    for cut, cut_of_second in zip(pairwise(first.cuts(borders)), pairwise(second.cuts(borders)), strict=True):
        own, others = first.piece(*cut), second.piece(*cut_of_second)
        keys, items = np.concatenate([own[0], others[0]]), np.concatenate([own[1], others[1]])
        order = np.argsort(keys, kind="stable")
        yield keys[order], items[order]
        first.let_go()
        second.let_go()


def pairs_once(first: Positions, second: Positions) -> tuple[Positions, Positions, Positions]:
    """Every pair of numbers once, in order: the first numbers, the second ones, and how often each pair is there. Their
    largest, multiplied, must be below 2 ** 63."""
    width = int(second.max(initial=0)) + 1
    once, counts = np.unique(first * width + second, return_counts=True)  # ten times as fast as of rows
    return *np.divmod(once, width), counts


class MappedFile:
    """``folder``: where the file lies; None: where the system keeps temporary ones."""

    def __init__(self, folder: Path | None) -> None:
        self._file = scratch_file(self, folder)
        self._n_bytes = 0
        self._map: mmap.mmap | None = None

    def append(self, numbers: NDArray[Any]) -> None:
        """Adds the numbers at the end. Nothing is added once the file was read."""
        self._n_bytes += self._file.write(np.ascontiguousarray(numbers).data.cast("B") if numbers.size else b"")

    def array(self, kind: type[Any]) -> NDArray[Any]:
        """All numbers, which are of one kind."""
        if not self._n_bytes:
            return np.zeros(0, kind)
        if self._map is None:
            self._file.flush()
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            self._file.close()  # the map keeps it
        return np.frombuffer(self._map, kind)

    def let_go(self) -> None:
        """Pages that were read are no longer this process's; they are read again where they are needed."""
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)
