"""Which of one person's boxes is which of another's: one to one, by overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from pipelines.geometry import Box


class Pair(NamedTuple):
    """A box of each side, by place, and how far they overlap."""

    left: int
    right: int
    iou: float


def iou(left: Box, right: Box) -> float:
    """Intersection over union, 0..1; 0 for two empty boxes."""
    common = left.intersection(right).area
    union = left.area + right.area - common
    return common / union if union else 0.0


def pairs(left: Sequence[Box], right: Sequence[Box]) -> list[Pair]:
    """The pairs with the largest sum of overlaps; boxes that overlap with none are in no pair."""
    overlaps = np.array([[iou(a, b) for b in right] for a in left], float).reshape(len(left), len(right))
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    found = zip(rows.tolist(), columns.tolist(), strict=True)
    return [Pair(row, column, float(overlaps[row, column])) for row, column in found if overlaps[row, column] > 0]


def mean_iou(left: Sequence[Box], right: Sequence[Box]) -> float | None:
    """The mean overlap of the pairs, a box too many or too few counting as 0; None without any box."""
    n = max(len(left), len(right))
    return sum(pair.iou for pair in pairs(left, right)) / n if n else None
