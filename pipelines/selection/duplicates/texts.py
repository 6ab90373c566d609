"""Near-duplicates among texts: by the exact Jaccard index of word n-grams whose MinHash signatures (Broder, 1997) meet.

Similar sets of word n-grams meet in at least one band. The threshold gives the hashes per band: as many as leave a pair
at the threshold a chance of at most one in a thousand of not meeting. Texts and their keys lie on disk; in memory are
about 30 bytes of every text, and 8 bytes a band of those that share a key with another one.

Words make spelling no difference: compatible characters, case, invisible characters and punctuation. Numbers with their
points, signs of arithmetic and brackets stay. Scripts written without spaces are split into their characters.
Look-alikes of other alphabets are not folded.
"""

import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.records.digest import key64
from darkroom.pipelines.selection.duplicates import Duplicate
from darkroom.pipelines.selection.duplicates.key_index import Keys, Positions, mixed
from darkroom.pipelines.storage.row_files import scratch_file

Words = tuple[str, ...]

_WORD = re.compile(
    r"\d+(?:[.,]\d+)*"  # 3.5 and 1,000 are one word
    r"|(?<=[\d)])!"  # a factorial
    r"|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    r"|[^\W\d_]+(?:['’][^\W\d_]+)*"
    r"|_+"  # a blank to fill in
    r"|[^\w\s.,;:!?\"'`“”„‘’«»…·•]"
)
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-"))


def words(text: str) -> Words:
    """The words, numbers and signs of a text.

    >>> words("What's “3.5” × 2?")
    ("what's", '3.5', '×', '2')
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    visible = "".join(mark for mark in folded if unicodedata.category(mark) != "Cf")
    return tuple(word.replace("’", "'") for word in _WORD.findall(visible.translate(_DASHES)))


def normalised(text: str) -> str:
    """One spelling for all texts of the same words; empty when there are none."""
    return " ".join(words(text))


def numbers(of: Sequence[str]) -> Words:
    """The words that are numbers, in order."""
    return tuple(word for word in of if word[0].isdigit())


def n_grams(of: Words, n: int) -> list[Words]:
    """Every run of ``n`` words, in order; of a shorter text its words as one run; of none, none."""
    if len(of) <= n:
        return [of] if of else []
    return [of[start : start + n] for start in range(len(of) - n + 1)]


THRESHOLD = 0.8
N_WORDS = 3
"""Of a run."""
N_HASHES = 128
BLOCK = 4096
"""Texts that are worked on together."""
_MISSED = 1e-3


HASHES_PER_BAND = max(n for n in range(1, N_HASHES + 1) if (1 - THRESHOLD**n) ** (N_HASHES // n) <= _MISSED)
"""The most with which a pair at the threshold is missed at most once in a thousand."""
N_BANDS = N_HASHES // HASHES_PER_BAND


class TextBands:
    """``texts`` and the keys of their runs of words, as ``near_in`` takes them."""

    def __init__(self, texts: Iterable[str], *, folder: Path | None = None) -> None:
        self._texts, self._keys = (scratch_file(self, folder) for _ in range(2))
        self._begins = array("q", [0])
        has_words = bytearray()
        remaining = iter(texts)
        while block := list(islice(remaining, BLOCK)):
            of_block = [words(text) for text in block]
            has_words += bytes(map(bool, of_block))
            for text in block:
                self._begins.append(self._begins[-1] + self._texts.write(text.encode("utf-8", "surrogatepass")))
            self._keys.write(self._band_keys(block, of_block).T.tobytes())  # a band of a block lies together
        self.has_words: NDArray[np.bool_] = np.fromiter(has_words, np.bool_, len(has_words))

    def __len__(self) -> int:
        return len(self._begins) - 1

    def text(self, index: int) -> str:
        begin, end = self._begins[index], self._begins[index + 1]
        self._texts.seek(begin)
        return self._texts.read(end - begin).decode("utf-8", "surrogatepass")

    def grams(self, index: int) -> frozenset[Words]:
        """The text's runs of words."""
        return frozenset(n_grams(words(self.text(index)), N_WORDS))

    def band(self, number: int) -> Keys:
        """One key of every text."""
        keys = np.empty(len(self), np.uint64)
        for start in range(0, len(self), BLOCK):
            length = min(BLOCK, len(self) - start)
            self._keys.seek(8 * (start * N_BANDS + number * length))
            keys[start : start + length] = np.frombuffer(self._keys.read(8 * length), np.uint64)
        return keys

    def meeting(self, groups: NDArray[np.int64] | None = None) -> tuple[Positions, NDArray[np.int32]]:
        """Find texts that share a key with another one of their group: their positions, and their keys by band. Keys
        are numbers from 0 on in each band: (bands, texts)."""
        has_twin = np.zeros(len(self), np.bool_)
        for band in range(N_BANDS):
            _, number, counts = np.unique(self._grouped(band, groups), return_inverse=True, return_counts=True)
            has_twin |= counts[number] > 1
        texts = np.flatnonzero(has_twin & self.has_words)
        bands = (self._grouped(band, groups)[texts] for band in range(N_BANDS))
        return texts, np.stack([np.unique(keys, return_inverse=True)[1].astype(np.int32) for keys in bands])

    def owners_that_meet(self, owners: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find the ``owners`` who have a text that meets another owner's. -1: a text without one."""
        meeting = [np.zeros(0, np.int64), *(_meeting(self.band(band), owners) for band in range(N_BANDS))]
        return np.asarray(np.unique(np.concatenate(meeting)), np.int64)

    def _grouped(self, band: int, groups: NDArray[np.int64] | None) -> Keys:
        keys = self.band(band)
        return keys if groups is None else mixed(keys, groups.astype(np.uint64))

    def _band_keys(self, texts: list[str], of_texts: list[Words]) -> Keys:
        """Texts that are the same without a word have the same keys, too."""
        from datasketch import MinHash  # takes a second: it imports much of scipy

        grams = ({" ".join(gram).encode("utf-8", "surrogatepass") for gram in n_grams(of, N_WORDS)} for of in of_texts)
        signatures = MinHash.generator(grams, num_perm=N_HASHES)
        values = np.array([signature.hashvalues for signature in signatures], np.uint64)
        keys = np.zeros((len(texts), N_BANDS), np.uint64) + np.arange(N_BANDS, dtype=np.uint64)
        for number in range(HASHES_PER_BAND):
            keys = mixed(keys, values[:, number : N_BANDS * HASHES_PER_BAND : HASHES_PER_BAND])
        # texts that differ in a number meet nowhere
        apart = ["\0".join(numbers(of)) if of else f"no words {text}" for text, of in zip(texts, of_texts, strict=True)]
        return mixed(keys, np.fromiter(map(key64, apart), np.uint64)[:, None])


def _meeting(keys: Keys, owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """The owners of keys that several owners have."""
    order = np.lexsort((owners, keys))
    order = order[owners[order] >= 0]
    if not len(order):
        return owners[:0]
    keys, owners = keys[order], owners[order]
    begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    ends = np.append(begins[1:], len(keys))
    has_several = owners[begins] != owners[ends - 1]
    return np.asarray(np.unique(owners[np.repeat(has_several, ends - begins)]), np.int64)


_REMEMBERED = 4096
"""Texts whose runs of words are in memory: those compared last."""
Groups = NDArray[np.int64]
"""Of every text a number; texts with other ones are not near."""


def near_texts(texts: Iterable[str], *, folder: Path | None = None) -> list[Duplicate]:
    """Texts whose runs of three words have a Jaccard index of at least ``THRESHOLD`` with an earlier text that stays:
    the most similar, of equal ones the first. Texts that differ in a number stay apart: problems made from one template
    are different problems. A text without words duplicates nothing. ``folder``: where texts wait on disk."""
    return list(near_in(TextBands(texts, folder=folder)))


def are_near(text: str, other_text: str) -> bool:
    """Compare two texts as ``near_texts`` does, which misses one pair at the threshold in a thousand."""
    grams, of_text = _runs_and_numbers(text)
    other_grams, of_other = _runs_and_numbers(other_text)
    return bool(grams) and of_text == of_other and _jaccard(grams, other_grams) >= THRESHOLD


@lru_cache(maxsize=_REMEMBERED)
def _runs_and_numbers(text: str) -> tuple[frozenset[Words], Words]:
    of_text = words(text)
    return frozenset(n_grams(of_text, N_WORDS)), numbers(of_text)


def near_in(texts: TextBands, *, groups: Groups | None = None) -> Iterator[Duplicate]:
    """``near_texts`` of texts whose keys are there, each within its group."""
    indexes, keys = texts.meeting(groups)
    latest = np.full(keys.shape, -1, np.int32)
    """Of every key the last text that stays, as a position among the ``indexes``."""
    grams = lru_cache(maxsize=_REMEMBERED)(texts.grams)
    bands = np.arange(len(keys))
    for at, index in enumerate(indexes.tolist()):
        own = keys[:, at].copy()
        chains = (_chain(keys[band], of) for band, of in enumerate(latest[bands, own].tolist()))
        similar = indexes[sorted(set(chain.from_iterable(chains)))].tolist()
        shares = ((_jaccard(grams(index), grams(of)), of) for of in similar)
        nearest = min(((1 - share, of) for share, of in shares if share >= THRESHOLD), default=None)
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
