"""Near-duplicates among texts: by the exact Jaccard index of word n-grams whose MinHash signatures meet.

What the words of a text are: ``words.py``; how near texts meet: ``text_bands.py``. Texts, keys and the index of those
that stay lie on disk; in memory are about 20 bytes of every text, besides the duplicates.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.selection.duplicates.base import Duplicate
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
    return list(near_in(bands, threshold=threshold))


def are_near(text: str, other: str) -> bool:
    """What ``near_texts`` says of the two with its defaults, which misses one pair at the threshold in a thousand."""
    (grams, of_text), (other_grams, of_other) = _runs_and_numbers(text), _runs_and_numbers(other)
    return bool(grams) and of_text == of_other and _jaccard(grams, other_grams) >= THRESHOLD


@lru_cache(maxsize=_REMEMBERED)
def _runs_and_numbers(text: str) -> tuple[frozenset[Words], Words]:
    of_text = words(text)
    return frozenset(n_grams(of_text, N_WORDS)), numbers(of_text)


def near_in(texts: TextBands, *, groups: Groups | None = None, threshold: float = THRESHOLD) -> Iterator[Duplicate]:
    """``near_texts`` of texts whose keys are there, each within its group."""
    indexes, keys = texts.meeting(groups)
    latest = np.full(keys.shape, -1, np.int32)
    """Of every key the last text that stays, as a position among the ``indexes``."""
    grams, bands = lru_cache(maxsize=_REMEMBERED)(texts.grams), np.arange(len(keys))
    for at, index in enumerate(indexes.tolist()):
        own = keys[:, at].copy()
        chains = (_chain(keys[band], of) for band, of in enumerate(latest[bands, own].tolist()))
        similar = indexes[sorted(set(chain.from_iterable(chains)))].tolist()
        shares = ((_jaccard(grams(index), grams(of)), of) for of in similar)
        nearest = min(((1 - share, of) for share, of in shares if share >= threshold), default=None)
        if nearest is None:
            keys[:, at] = latest[bands, own]  # from here on the one that stays before it under the same key
            latest[bands, own] = at
        else:
            yield Duplicate(index, nearest[1], "near_text", nearest[0])


def _chain(earlier: NDArray[np.int32], at: int) -> Iterator[int]:
    """The texts that stay under one key, from the last one to the first."""
    while at >= 0:
        yield at
        at = int(earlier[at])


def _jaccard(grams: frozenset[tuple[str, ...]], others: frozenset[tuple[str, ...]]) -> float:
    n_shared = len(grams & others)
    return n_shared / (len(grams) + len(others) - n_shared)
