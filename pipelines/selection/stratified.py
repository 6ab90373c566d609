"""Selection: exactly so many accepted rows, balanced over categories and difficulties, the same ones every time.

Rows are dealt round robin from their strata, within a stratum in an order that depends on the row alone:
the rows for a smaller number are among those for a larger one, and a row that is added moves no other out of order.
"""

import math
from array import array
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.records import Sample
from darkroom.pipelines.records.digest import digest

_TINY, _SMALL = 0.001, 0.01
_KEY_DIGITS = 16  # of a row's digest: 64 bits decide its turn


@dataclass(frozen=True, slots=True)
class Candidate:
    """What selection needs to know of a row."""

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
        stratum = (candidate.category, candidate.difficulty)
        self._strata.append(self._numbers.setdefault(stratum, len(self._numbers)))
        turn = digest([0, candidate.row_id])  # the 0 keeps the order in which earlier releases dealt
        self._keys.append(int(turn[:_KEY_DIGITS], 16))
        self._places.append(place)

    def order(self) -> NDArray[np.int64]:
        """The places in the order in which they are selected."""
        return np.array(self._places, np.int64)[self._turns()]

    def left_out(self, n_rows: int) -> NDArray[np.int64]:
        """The places of all but the first ``n_rows`` in that order, as added. Raises ``ValueError`` below 0."""
        if n_rows < 0:
            raise ValueError(f"a number of rows is 0 or more; found {n_rows}")
        is_selected = np.zeros(len(self), np.bool_)
        is_selected[self._turns()[:n_rows]] = True
        return np.array(self._places, np.int64)[~is_selected]

    def _turns(self) -> NDArray[np.int64]:
        """Which candidate is selected first, second and so on."""
        ranks = np.empty(len(self._numbers), np.int32)
        ranks[[self._numbers[stratum] for stratum in sorted(self._numbers, key=repr)]] = np.arange(len(ranks))
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
    total = sum(weights.values())
    if total <= 0:
        return dict.fromkeys(weights, 0)
    exact = {family: n_rows * n / total for family, n in weights.items()}
    quotas = {family: math.floor(share) for family, share in exact.items()}
    by_remainder = sorted(weights, key=lambda family: (quotas[family] - exact[family], family))
    for family in by_remainder[: n_rows - sum(quotas.values())]:
        quotas[family] += 1
    return quotas


def difficulty(sample: Sample) -> str:
    """How small the target is: ``tiny`` below a thousandth of the image, ``small`` below a hundredth."""
    if not sample.images or not sample.truth.boxes:
        return "none"
    target = sample.truth.boxes[0]
    image = sample.images[target.image]
    share = target.box.area / (image.width * image.height)
    return "tiny" if share < _TINY else "small" if share < _SMALL else "large"
