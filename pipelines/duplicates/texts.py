"""Near-duplicates among texts: MinHash proposes, the exact Jaccard index of the word n-grams decides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipelines.duplicates.base import Duplicate
from pipelines.duplicates.minhash import Signature, bands, signature, stable_hash
from pipelines.duplicates.words import Words, n_grams, numbers, words

THRESHOLD = 0.8
N_WORDS = 3
_SLACK = 0.2
"""Five standard deviations of the share of equal hashes among 128: what is below the threshold by more isn't read."""


@dataclass(frozen=True, slots=True)
class _Text:
    index: int
    numbers: Words
    grams: frozenset[int]
    signature: Signature


def near_texts(
    texts: Sequence[str], *, threshold: float = THRESHOLD, n_words: int = N_WORDS, same_numbers: bool = True
) -> list[Duplicate]:
    """Texts whose ``n_words``-grams have a Jaccard index of at least ``threshold`` with an earlier text that stays.

    The most similar such, of equally similar ones the first. ``same_numbers`` keeps apart what differs in a number:
    problems made from one template are different problems. A text without words duplicates nothing. Raises
    ``ValueError`` for a threshold outside 0 (exclusive) to 1.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"a threshold is above 0 and at most 1, found {threshold}")
    stayed = _Stayed(threshold)
    found = []
    for index, text in enumerate(texts):
        of_text = words(text)
        if not of_text:
            continue
        grams = frozenset(stable_hash(" ".join(gram)) for gram in n_grams(of_text, n_words))
        item = _Text(index, numbers(of_text) if same_numbers else (), grams, signature(grams))
        best = stayed.nearest(item)
        if best is None:
            stayed.add(item)
        else:
            found.append(Duplicate(index, best[1], "near_text", best[0]))
    return found


@dataclass(slots=True)
class _Stayed:
    """The texts that stay, by their bands."""

    threshold: float
    _texts: list[_Text] = field(default_factory=list)
    _signatures: Signature = field(default_factory=lambda: np.empty((1024, 128), np.uint64))
    _buckets: dict[tuple[Words, int, bytes], list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, text: _Text) -> None:
        place = len(self._texts)
        if place == len(self._signatures):
            self._signatures = np.concatenate([self._signatures, np.empty_like(self._signatures)])
        self._signatures[place] = text.signature
        self._texts.append(text)
        for key in self._keys(text):
            self._buckets[key].append(place)

    def nearest(self, text: _Text) -> tuple[float, int] | None:
        """Distance and index of the most similar text, if it is similar enough."""
        places = {place for key in self._keys(text) if key in self._buckets for place in self._buckets[key]}
        similar = [(_jaccard(text.grams, other.grams), other.index) for other in self._likely(text, sorted(places))]
        return min(((1 - index, of) for index, of in similar if index >= self.threshold), default=None)

    def _likely(self, text: _Text, places: list[int]) -> Iterable[_Text]:
        if not places:
            return []
        equal = (self._signatures[places] == text.signature).mean(axis=1)
        return [
            self._texts[place] for place, share in zip(places, equal, strict=True) if share >= self.threshold - _SLACK
        ]

    def _keys(self, text: _Text) -> list[tuple[Words, int, bytes]]:
        return [(text.numbers, band, key) for band, key in enumerate(bands(text.signature, threshold=self.threshold))]


def _jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    both = len(one & other)
    return both / (len(one) + len(other) - both)
