"""Samples and splits: exactly so many rows, balanced over categories and difficulties; splits that no image crosses.

Rows are dealt round robin from their strata, within a stratum in an order that depends on the row alone: the rows for a
smaller number are among those for a larger one, and an added row moves no other out of order.

Rows that share an image, directly or by way of other rows, are a group, as are an image and what was made of it. Rows
without images are groups of one. A group is in one split: the one that it was published in (of two, train), else the
one that its smallest digest decides. A family that this gives fewer validation rows than its share gets more groups,
unpublished ones, in the order of their digests. A million samples of three images take about 300 MB while they are
grouped and 10 MB afterwards: images are known by 64 bits.
"""

import math
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.records import ImageRef, Sample, VideoRef
from darkroom.pipelines.records.digest import digest, key64

_TINY, _SMALL = 0.001, 0.01
_KEY_DIGITS = 16  # of a digest: 64 bits decide a turn


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row as selection sees it."""

    row_id: str
    category: str = ""
    difficulty: str = ""


class Strata:
    """Candidates to select from by their places (any numbers of the caller's); 20 bytes each are in memory."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._strata, self._keys, self._places = array("i"), array("Q"), array("q")

    def __len__(self) -> int:
        return len(self._places)

    def add(self, candidate: Candidate, place: int) -> None:
        self._strata.append(self._numbers.setdefault((candidate.category, candidate.difficulty), len(self._numbers)))
        turn = digest([0, candidate.row_id])  # the 0 keeps the order in which earlier releases dealt
        self._keys.append(int(turn[:_KEY_DIGITS], 16))
        self._places.append(place)

    def order(self) -> NDArray[np.int64]:
        return np.array(self._places, np.int64)[self._turns()]

    def left_out(self, n_rows: int) -> NDArray[np.int64]:
        """The places of all but the first ``n_rows`` in that order, as added. Raises ``ValueError`` below 0."""
        if n_rows < 0:
            raise ValueError(f"a number of rows is 0 or more; found {n_rows}")
        return np.array(self._places, np.int64)[np.sort(self._turns()[n_rows:])]

    def _turns(self) -> NDArray[np.int64]:
        """Candidates in the order of selection."""
        ranks = np.argsort([self._numbers[stratum] for stratum in sorted(self._numbers, key=repr)])
        strata = ranks[np.array(self._strata, np.int32)]
        by_stratum = np.lexsort((np.array(self._keys, np.uint64), strata))
        strata = strata[by_stratum]
        turns = np.arange(len(strata)) - np.searchsorted(strata, strata)
        return np.asarray(by_stratum[np.lexsort((strata, turns))], np.int64)


def ordered(candidates: Sequence[Candidate]) -> Iterator[str]:
    """The ids of all rows in the order in which they are selected."""
    strata = Strata()
    for place, candidate in enumerate(candidates):
        strata.add(candidate, place)
    return (candidates[place].row_id for place in strata.order().tolist())


def mixture(weights: Mapping[str, int], n_rows: int) -> dict[str, int]:
    """``weights`` scaled to ``n_rows`` in all, to the row (largest remainder): Thyme's mixture at any size (App. B)."""
    if (total := sum(weights.values())) <= 0:
        return dict.fromkeys(weights, 0)
    exact = {family: n_rows * n / total for family, n in weights.items()}
    quotas = {family: math.floor(share) for family, share in exact.items()}
    by_remainder = sorted(weights, key=lambda family: (quotas[family] - exact[family], family))
    for family in by_remainder[: n_rows - sum(quotas.values())]:
        quotas[family] += 1
    return quotas


def difficulty(sample: Sample) -> str:
    """Size of the target: ``tiny`` below a thousandth of the image, ``small`` below a hundredth."""
    if not sample.images or not sample.truth.boxes:
        return "none"
    target = sample.truth.boxes[0]
    image = sample.images[target.image]
    if (share := target.box.area / (image.width * image.height)) < _TINY:
        return "tiny"
    return "small" if share < _SMALL else "large"


Split = Literal["train", "validation"]
Marks = NDArray[np.bool_]
SPLITS: tuple[Split, ...] = ("train", "validation")
_BUCKETS = 10_000
_ORDER_BITS = 32
_DIGEST_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Splits:
    """Split of each sample."""

    keys: NDArray[np.uint64]
    """Of the samples' ids, sorted; without any, all are for training."""
    held_out: Marks
    """Of each of them, whether it is for validation."""

    def of(self, sample_id: str) -> Split:
        """The sample's split. Raises ``KeyError`` for a sample that was not grouped, unless all are for training."""
        begin, end = (np.searchsorted(self.keys, np.uint64(key64(sample_id)), side) for side in ("left", "right"))
        if begin == end and len(self.keys):
            raise KeyError(sample_id)
        return "validation" if self.held_out[begin:end].any() else "train"


ALL_FOR_TRAINING = Splits(np.empty(0, np.uint64), np.empty(0, np.bool_))


def grouped(
    samples: Iterable[Sample],
    *,
    validation_share: float,
    same: Mapping[str, str] | None = None,
    families: Iterable[Iterable[str]] = (),
    published: Iterable[tuple[Split, Sample]] = (),
) -> Splits:
    """The splits of all samples, which must be given together. ``same``: images that are another one, changed.
    ``families``: for each family that is to have its share, the sample of every row. ``published``: earlier rows'
    samples with their splits. Raises ``ValueError`` for a share outside 0..1."""
    if not 0 <= validation_share <= 1:
        raise ValueError(f"a share lies in 0..1; found {validation_share}")
    ids, sources, owners, kept, smallest = array("Q"), array("Q"), array("i"), array("b"), bytearray()
    for place, (split, sample) in enumerate(chain(zip(repeat(""), samples), published)):
        ids.append(key64(sample.sample_id))
        kept.append(("", *SPLITS).index(split))
        # what the sample shows, and what that was made of
        files: list[ImageRef | VideoRef] = [*sample.images, *sample.videos]
        shown = [sha256 for file in files for sha256 in (file.sha256, file.parent) if sha256] or [sample.sample_id]
        smallest += min(shown).encode().ljust(_DIGEST_LENGTH, b"\0")
        sources.extend(map(key64, shown))
        owners.extend([place] * len(shown))
    pairs = [(key64(image), key64(of)) for image, of in (same or {}).items()]
    labels = _components(np.frombuffer(sources, np.uint64), np.frombuffer(owners, np.int32), pairs)
    turns = _turns(labels, np.frombuffer(smallest, f"S{_DIGEST_LENGTH}"))
    keys, first = np.unique(np.frombuffer(ids, np.uint64), return_index=True)
    groups = labels[first]
    of_train, of_validation = (np.isin(np.arange(len(turns)), labels[np.array(kept) == n]) for n in (1, 2))
    by_digest = ~of_train & (turns >> _ORDER_BITS < validation_share * _BUCKETS)
    sizes: list[NDArray[Any]] = [np.zeros(len(turns), np.int64)]
    for family in families:
        rows = np.fromiter(map(key64, family), np.uint64)
        sizes.append(np.bincount(groups[np.searchsorted(keys, rows[np.isin(rows, keys)])], minlength=len(turns)))
    added = _added(np.stack(sizes), np.argsort(turns), by_digest, of_train, share=validation_share)
    return Splits(keys, ((by_digest | of_validation | added) & ~of_train)[groups])


def _added(
    sizes: NDArray[np.int64], order: NDArray[np.int64], by_digest: Marks, of_train: Marks, *, share: float
) -> Marks:
    """The groups that families with so many rows in each (families, groups) need for their shares besides those
    ``by_digest``: in ``order`` those with which no family gets more than its share; if they are not enough, a few rows
    more, twice as many each time. Every family keeps a group to train on. Which of these are published decides nothing:
    an interrupted run ends as one that was not."""
    due = np.round(share * sizes.sum(axis=1), 9)
    needed = np.where(due >= 1, np.ceil(due), 0)
    held_out, n_in_train = sizes[:, by_digest].sum(axis=1), np.count_nonzero(sizes[:, ~by_digest], axis=1)
    added, n_more = np.zeros(len(order), np.bool_), 0
    while (held_out < needed).any() and n_more < 2 * sizes.sum():
        wanted = (sizes[held_out < needed] > 0).any(axis=0) & ~(by_digest | of_train | added)
        for group in order[wanted[order]].tolist():
            own = sizes[:, group]
            fits = (own == 0) | ((held_out + own <= needed + n_more) & (n_in_train > 1))
            if fits.all() and ((own > 0) & (held_out < needed)).any():
                added[group] = True
                held_out, n_in_train = held_out + own, n_in_train - (own > 0)
        n_more = 2 * n_more + 1
    return added


def _components(
    sources: NDArray[np.uint64], owners: NDArray[np.int32], same: Sequence[tuple[int, int]]
) -> NDArray[np.int32]:
    """Number the groups of samples. ``owners``: the samples, from 0 on, whose ``sources`` they are."""
    from scipy.sparse import coo_array  # takes half a second to import
    from scipy.sparse.csgraph import connected_components

    unique, images = np.unique(sources, return_inverse=True)
    n_samples = int(owners[-1]) + 1 if len(owners) else 0
    # an edge from every sample to each of its sources, and between images that are the same
    pairs = np.searchsorted(unique, np.array(same, np.uint64).reshape(-1, 2))
    begins = np.concatenate([owners, n_samples + pairs[:, 0]], dtype=np.int32)
    ends = np.concatenate([images, pairs[:, 1]], dtype=np.int32, casting="same_kind")
    ends += n_samples
    n_nodes = n_samples + len(unique)
    del unique, images
    graph: Any = coo_array((np.ones(len(ends), np.int8), (begins, ends)), (n_nodes, n_nodes)).tocsr()
    return np.asarray(connected_components(graph, directed=False)[1][:n_samples], np.int32)


def _turns(labels: NDArray[np.int32], digests: NDArray[np.bytes_]) -> NDArray[np.uint64]:
    """Order of the groups, by their smallest ``digests``: a bucket, evenly spread over 0 to 9,999, then 32 bits."""
    order = np.argsort(digests, kind="stable")
    _, first = np.unique(labels[order], return_index=True)
    names = (bytes(digests[place]).decode() for place in order[first])
    numbers = np.fromiter((int(digest(["split", name])[:8], 16) for name in names), np.uint64)
    return np.asarray((numbers % _BUCKETS << _ORDER_BITS) + numbers, np.uint64)
