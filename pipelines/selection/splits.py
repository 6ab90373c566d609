"""Splits that no image crosses: rows that share an image, or one that was made of it or is it changed, stay together.

What shares images, directly or by way of other rows, is a group; the group's smallest digest decides its split. Rows
without images are groups of one. A million samples of three images take about 300 MB while they are grouped and 10 MB
afterwards: images are known by 64 bits, and two that share them are in one group.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.digest import digest, digest_bytes, key64

Split = Literal["train", "validation"]
SPLITS: tuple[Split, ...] = ("train", "validation")
_BUCKETS = 10_000
_DIGEST_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Splits:
    """Which split a sample is in. ``validation_share`` is of the groups, on average."""

    keys: NDArray[np.uint64]
    """Of the samples' ids, sorted."""
    buckets: NDArray[np.uint16]
    """Of each of them its group's, evenly spread over 0 to 9,999."""
    validation_share: float = 0.0

    @property
    def fingerprint(self) -> str:
        """Changes with the samples and their groups."""
        return digest([digest_bytes(self.keys.tobytes()), digest_bytes(self.buckets.tobytes())])

    def bucket(self, sample_id: str) -> int:
        """The same for all samples of a group. Raises ``KeyError`` for a sample that was not grouped."""
        key = np.uint64(key64(sample_id))
        place = int(np.searchsorted(self.keys, key))
        if place == len(self.keys) or self.keys[place] != key:
            raise KeyError(sample_id)
        return int(self.buckets[place])

    def of(self, sample_id: str) -> Split:
        """The sample's split. Raises ``KeyError`` for a sample that was not grouped, unless all are for training."""
        if not self.validation_share:
            return "train"
        return "validation" if self.bucket(sample_id) < self.validation_share * _BUCKETS else "train"


ALL_FOR_TRAINING = Splits(np.empty(0, np.uint64), np.empty(0, np.uint16))


def grouped(
    samples: Iterable[Sample], *, validation_share: float = 0.0, same: Mapping[str, str] | None = None
) -> Splits:
    """The splits of all samples, which must be given together. ``same``: images that are another one, changed.

    Raises ``ValueError`` for a share outside 0..1.
    """
    if not 0 <= validation_share <= 1:
        raise ValueError(f"a share lies in 0..1; found {validation_share}")
    ids, sources, owners, smallest = array("Q"), array("Q"), array("i"), bytearray()
    for place, sample in enumerate(samples):
        ids.append(key64(sample.sample_id))
        digests_shown = list(_sources(sample))
        smallest += min(digests_shown).encode().ljust(_DIGEST_LENGTH, b"\0")
        sources.extend(map(key64, digests_shown))
        owners.extend([place] * len(digests_shown))
    digests = np.frombuffer(smallest, f"S{_DIGEST_LENGTH}")
    keys, first = np.unique(np.frombuffer(ids, np.uint64), return_index=True)
    pairs = [(key64(image), key64(of)) for image, of in (same or {}).items()]
    labels = _components(np.frombuffer(sources, np.uint64), np.frombuffer(owners, np.int32), pairs)
    return Splits(keys, _buckets(labels, digests)[first], validation_share)


def _components(
    sources: NDArray[np.uint64], owners: NDArray[np.int32], same: Sequence[tuple[int, int]]
) -> NDArray[np.int32]:
    """Of every sample the number of its group. ``owners``: the samples, from 0 on, whose ``sources`` they are."""
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


def _buckets(labels: NDArray[np.int32], digests: NDArray[np.bytes_]) -> NDArray[np.uint16]:
    """Of every sample the bucket of its group's smallest digest."""
    order = np.argsort(digests, kind="stable")
    groups, first = np.unique(labels[order], return_index=True)
    smallest = (bytes(digests[place]).decode() for place in order[first])
    buckets = (int(digest(["split", name])[:8], 16) % _BUCKETS for name in smallest)
    return np.fromiter(buckets, np.uint16, len(groups))[np.searchsorted(groups, labels)]


def _sources(sample: Sample) -> Iterator[str]:
    """Digests of what the sample shows, and of what that was made of."""
    for image in sample.images:
        yield image.sha256
        if image.parent:
            yield image.parent
    yield from (video.sha256 for video in sample.videos)
    if not sample.images and not sample.videos:
        yield sample.sample_id
