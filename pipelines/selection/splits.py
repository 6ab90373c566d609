"""Splits that no image crosses: rows that share an image, or one that was made of it or is it changed, stay together.

What shares images, directly or by way of other rows, is a group; the group's smallest digest decides its split. Rows
without images are groups of one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pipelines.records import Sample
from pipelines.records.digest import digest

Split = Literal["train", "validation"]
SPLITS: tuple[Split, ...] = ("train", "validation")
_BUCKETS = 10_000


@dataclass(frozen=True, slots=True)
class Splits:
    """Which split a sample is in. ``validation_share`` is of the groups, on average."""

    groups: Mapping[str, str]
    """A sample's id to its group's."""
    validation_share: float = 0.0

    def of(self, sample_id: str) -> Split:
        """The sample's split. Raises ``KeyError`` for a sample that was not grouped."""
        bucket = int(digest(["split", self.groups[sample_id]])[:8], 16) % _BUCKETS
        return "validation" if bucket < self.validation_share * _BUCKETS else "train"


def grouped(
    samples: Iterable[Sample], *, validation_share: float = 0.0, same: Mapping[str, str] | None = None
) -> Splits:
    """The splits of all samples, which must be given together. ``same``: images that are another one, changed.

    Raises ``ValueError`` for a share outside 0..1.
    """
    if not 0 <= validation_share <= 1:
        raise ValueError(f"a share lies in 0..1; found {validation_share}")
    from scipy.cluster.hierarchy import DisjointSet  # takes half a second to import

    of_sample = {sample.sample_id: list(_sources(sample)) for sample in samples}
    sets = DisjointSet(source for sources in of_sample.values() for source in sources)
    for first, *others in of_sample.values():
        for source in others:
            sets.merge(first, source)
    for image, of in (same or {}).items():
        sets.merge(image, of)
    smallest: dict[str, str] = {}
    for group in sets.subsets():
        smallest |= dict.fromkeys(group, min(group))
    return Splits({sample_id: smallest[sources[0]] for sample_id, sources in of_sample.items()}, validation_share)


def _sources(sample: Sample) -> Iterator[str]:
    """Digests of what the sample shows, and of what that was made of."""
    for image in sample.images:
        yield image.sha256
        if image.parent:
            yield image.parent
    yield from (video.sha256 for video in sample.videos)
    if not sample.images and not sample.videos:
        yield sample.sample_id
