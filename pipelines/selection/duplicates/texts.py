"""Near-duplicates among texts: by the exact Jaccard index of word n-grams whose MinHash signatures meet.

What the words of a text are: ``words.py``; how near texts meet: ``text_bands.py``. Texts, keys and the index of those
that stay lie on disk; in memory are about 20 bytes of every text, besides the duplicates.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.selection.duplicates.base import Duplicate
from darkroom.pipelines.selection.duplicates.key_index import KeyIndex, Keys, mixed
from darkroom.pipelines.selection.duplicates.text_bands import N_WORDS, TextBands, Words, n_grams, numbers, words

THRESHOLD = 0.8
_REMEMBERED = 4096
"""Texts whose runs of words are in memory: those compared last."""
Groups = NDArray[np.int64]
"""Of every text a number; texts with other ones are not near."""


def banded_texts(
    texts: Iterable[str],
    *,
    threshold: float = THRESHOLD,
    same_numbers: bool = True,
    folder: Path | None = None,
) -> TextBands:
    """The texts as ``near_in`` takes them. Raises ``ValueError`` for a threshold outside 0 (exclusive) to 1."""
    if not 0 < threshold <= 1:
        raise ValueError(f"a threshold is above 0 and at most 1, found {threshold}")
    return TextBands(texts, threshold=threshold, same_numbers=same_numbers, folder=folder)


def near_texts(
    texts: Iterable[str],
    *,
    threshold: float = THRESHOLD,
    same_numbers: bool = True,
    folder: Path | None = None,
) -> list[Duplicate]:
    """Texts whose runs of three words have a Jaccard index of at least ``threshold`` with an earlier text that stays.

    The most similar such, of equally similar ones the first. ``same_numbers`` keeps apart what differs in a number:
    problems made from one template are different problems. A text without words duplicates nothing. ``folder``: where
    texts wait on disk. Raises ``ValueError`` for a threshold outside 0 (exclusive) to 1.
    """
    bands = banded_texts(texts, threshold=threshold, same_numbers=same_numbers, folder=folder)
    return list(near_in(bands, threshold=threshold, folder=folder))


def are_near(text: str, other: str) -> bool:
    """What ``near_texts`` says of the two with its defaults, which misses one pair at the threshold in a thousand."""
    (grams, of_text), (other_grams, of_other) = _runs_and_numbers(text), _runs_and_numbers(other)
    return bool(grams) and of_text == of_other and _jaccard(grams, other_grams) >= THRESHOLD


@lru_cache(maxsize=_REMEMBERED)
def _runs_and_numbers(text: str) -> tuple[frozenset[Words], Words]:
    of_text = words(text)
    return frozenset(n_grams(of_text, N_WORDS)), numbers(of_text)


def near_in(
    texts: TextBands, *, groups: Groups | None = None, threshold: float = THRESHOLD, folder: Path | None = None
) -> Iterator[Duplicate]:
    """``near_texts`` of texts whose keys are there, each within its group."""
    staying = KeyIndex(folder, n_keys=len(texts) * texts.n_bands)
    grams = lru_cache(maxsize=_REMEMBERED)(texts.grams)

    def nearest(index: int, similar: set[int]) -> tuple[float, int] | None:
        shares = ((_jaccard(grams(index), grams(at)), at) for at in similar)
        return min(((1 - share, at) for share, at in shares if share >= threshold), default=None)

    for start, keys in texts.blocks():
        if groups is not None:
            keys = mixed(keys, groups[start : start + len(keys), None].astype(np.uint64))
        stays: list[int] = []
        for index, similar in _similar(start, keys, staying, texts.has_words, stays):
            found = nearest(index, similar)
            if found is None:
                stays.append(index)
            else:
                yield Duplicate(index, found[1], "near_text", found[0])
        if start + len(keys) < len(texts):
            own = np.array(stays, np.int64)
            staying.add(keys[own - start].ravel(), np.repeat(own, keys.shape[1]).astype(np.uint32))


def _similar(
    start: int, keys: Keys, staying: KeyIndex, has_words: NDArray[np.bool_], stays: list[int]
) -> Iterator[tuple[int, set[int]]]:
    """Every text of a block with those that it meets among the ``staying`` ones and, of the block, among ``stays``.

    The caller adds the text to ``stays`` before it takes the next one, or not.
    """
    n_bands = keys.shape[1]
    found = staying.find(keys.ravel())
    earlier: defaultdict[int, set[int]] = defaultdict(set)
    for place, item in zip((found.key // n_bands).tolist(), found.item.tolist(), strict=True):
        earlier[place].add(item)
    shared = _shared_keys(keys)
    in_block: defaultdict[int, list[int]] = defaultdict(list)
    for place in range(len(keys)):
        index, own = start + place, shared.get(place, [])
        if has_words[index]:
            yield index, earlier[place].union(*(in_block[key] for key in own))
            if stays and stays[-1] == index:
                for key in own:
                    in_block[key].append(index)


def _shared_keys(keys: Keys) -> dict[int, list[int]]:
    """Of the texts of a block, by place, those of their keys that are there again; most texts have none."""
    _, number, counts = np.unique(keys, return_inverse=True, return_counts=True)
    places, bands = np.nonzero(counts[number.reshape(keys.shape)] > 1)
    shared: defaultdict[int, list[int]] = defaultdict(list)
    for place, key in zip(places.tolist(), keys[places, bands].tolist(), strict=True):
        shared[place].append(key)
    return shared


def _jaccard(grams: frozenset[tuple[str, ...]], others: frozenset[tuple[str, ...]]) -> float:
    n_shared = len(grams & others)
    return n_shared / (len(grams) + len(others) - n_shared)
