"""Duplicates among texts: the same words, or by the exact Jaccard index of word n-grams whose MinHash signatures meet.

Compatible spellings, case, invisible characters and punctuation make no difference. What carries meaning stays: numbers
with their points, signs of arithmetic, brackets. Scripts that are written without spaces are split into their
characters. Look-alikes of other alphabets are not folded.

Sets that are alike meet in at least one band of their MinHash signatures (Broder, 1997; ``datasketch``). How many rows
a band has follows from the threshold: as many as leave a pair at the threshold a chance of at most one in a thousand of
not meeting.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pipelines.selection.duplicates.base import Duplicate, repeated

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


N_HASHES = 128
_MISSED = 1e-3
THRESHOLD = 0.8
N_WORDS = 3


class _Text(NamedTuple):
    position: int
    words: Words


def exact_texts(texts: Iterable[str]) -> list[Duplicate]:
    """Texts whose words came before. A text without words duplicates nothing."""
    return repeated((normalised(text) or None for text in texts), "exact_text")


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
    groups: defaultdict[Words, list[_Text]] = defaultdict(list)
    for index, text in enumerate(texts):
        if of_text := words(text):
            groups[numbers(of_text) if same_numbers else ()].append(_Text(index, of_text))
    duplicates = [
        duplicate
        for group in groups.values()
        if len(group) > 1
        for duplicate in _near_in_group(group, threshold=threshold, n_words=n_words)
    ]
    return sorted(duplicates, key=lambda duplicate: duplicate.index)


def _near_in_group(group: Sequence[_Text], *, threshold: float, n_words: int) -> Iterator[Duplicate]:
    from datasketch import MinHash, MinHashLSH  # takes a second: it imports much of scipy

    rows = rows_per_band(threshold)
    lsh = MinHashLSH(num_perm=N_HASHES, params=(N_HASHES // rows, rows))
    staying: dict[int, frozenset[str]] = {}
    for text in group:
        grams = frozenset(map(" ".join, n_grams(text.words, n_words)))
        signature = MinHash(N_HASHES)
        signature.update_batch([gram.encode("utf-8", "surrogatepass") for gram in grams])
        similar = ((len(grams & staying[at]) / len(grams | staying[at]), at) for at in lsh.query(signature))
        nearest = min(((1 - share, index) for share, index in similar if share >= threshold), default=None)
        if nearest is None:
            lsh.insert(text.position, signature)
            staying[text.position] = grams
        else:
            yield Duplicate(text.position, nearest[1], "near_text", nearest[0])


def rows_per_band(threshold: float) -> int:
    """The most rows per band with which a pair at the threshold is missed at most once in a thousand."""
    allowed = [rows for rows in range(1, N_HASHES + 1) if (1 - threshold**rows) ** (N_HASHES // rows) <= _MISSED]
    return max(allowed, default=1)
