"""Near-duplicates among images and among texts, each with the one that stays (the first) and the measured distance.
Every duplicate was itself compared with the one that it names: a chain of small changes does not join its two ends."""

from dataclasses import dataclass
from typing import Literal

DuplicateKind = Literal["near_image", "near_text"]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Item ``index`` duplicates the earlier item ``of``, which stays; both are positions in the compared sequence.
    ``distance``: differing bits of 64 for images, 1 - Jaccard for texts. ``turn``: the image's, to look like ``of``."""

    index: int
    of: int
    kind: DuplicateKind
    distance: float
    turn: str = ""
