"""Which of one person's boxes is which of another's: one to one, by overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pipelines.geometry import Box


class Pair(NamedTuple):
    """A box of each side, by place, and how far they overlap."""

    left: int
    right: int
    iou: float


class Matched(NamedTuple):
    """How many boxes of ``n_given`` are among ``n_expected``."""

    n_pairs: int
    n_given: int
    n_expected: int

    @property
    def precision(self) -> float | None:
        """Of the given boxes, those that are expected; None without a given box."""
        return self.n_pairs / self.n_given if self.n_given else None

    @property
    def recall(self) -> float | None:
        """Of the expected boxes, those that are given; None without an expected box."""
        return self.n_pairs / self.n_expected if self.n_expected else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of both; None without any box."""
        n = self.n_given + self.n_expected
        return 2 * self.n_pairs / n if n else None


def iou(left: Box, right: Box) -> float:
    """Intersection over union, 0..1; 0 for two empty boxes."""
    common = left.intersection(right).area
    union = left.area + right.area - common
    return common / union if union else 0.0


def pairs(left: Sequence[Box], right: Sequence[Box]) -> list[Pair]:
    """The pairs with the largest sum of overlaps; boxes that overlap with none are in no pair."""
    overlaps = _overlaps(left, right)
    return _assigned(overlaps, overlaps)


def mean_iou(left: Sequence[Box], right: Sequence[Box]) -> float | None:
    """The mean overlap of the pairs, a box too many or too few counting as 0; None without any box."""
    n = max(len(left), len(right))
    return sum(pair.iou for pair in pairs(left, right)) / n if n else None


def match(given: Sequence[Box], expected: Sequence[Box], *, threshold: float = 0.5) -> Matched:
    """As many pairs with an overlap of ``threshold`` or more as there can be. Raises ``ValueError`` outside of 0..1."""
    if not 0 < threshold <= 1:
        raise ValueError(f"a threshold of overlap lies above 0 and up to 1; found {threshold}")
    overlaps = _overlaps(given, expected)
    return Matched(len(_assigned((overlaps >= threshold).astype(float), overlaps)), len(given), len(expected))


def _overlaps(left: Sequence[Box], right: Sequence[Box]) -> NDArray[np.float64]:
    return np.array([[iou(a, b) for b in right] for a in left], float).reshape(len(left), len(right))


def _assigned(worth: NDArray[np.float64], overlaps: NDArray[np.float64]) -> list[Pair]:
    rows, columns = linear_sum_assignment(worth, maximize=True)
    found = zip(rows.tolist(), columns.tolist(), strict=True)
    return [Pair(row, column, float(overlaps[row, column])) for row, column in found if worth[row, column] > 0]
