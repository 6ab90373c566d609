"""What a duplicate is: one that goes, the one that stays for it, and how far apart they were measured to be.

The first in order stays. Nothing is merged through a third one: every duplicate was itself compared with the one that
it names, so a chain of small changes does not make one cluster of its two ends.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

DuplicateKind = Literal["exact_image", "exact_text", "near_image", "near_text"]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Item ``index`` duplicates the earlier item ``of``, which stays; both are positions in what was given.

    ``distance`` is 0 for exact ones, differing bits of 64 for images, 1 - Jaccard for texts. ``turn`` says how the
    image must be turned to look like the one that stays.
    """

    index: int
    of: int
    kind: DuplicateKind
    distance: float
    turn: str = ""


def kept(n: int, duplicates: Iterable[Duplicate]) -> list[int]:
    """The positions of ``n`` items that stay, in order."""
    gone = {duplicate.index for duplicate in duplicates}
    return [index for index in range(n) if index not in gone]


def repeated(keys: Iterable[Hashable | None], kind: DuplicateKind) -> list[Duplicate]:
    """Exact duplicates: items whose key came before. None is no key."""
    first: dict[Hashable, int] = {}
    duplicates = []
    for index, key in enumerate(keys):
        of = index if key is None else first.setdefault(key, index)
        if of != index:
            duplicates.append(Duplicate(index, of, kind, 0.0))
    return duplicates
