"""Paired differences of two arms, one per seed: their mean, its interval, and the sign test.

A seed is the unit. The questions of one model are not independent of one another: a model that unlearned one colour
answers all questions about it wrongly.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from scipy import stats

CONFIDENCE = 0.95
Verdict = Literal["shown", "not shown", "the opposite is shown", "undecided: one seed"]


@dataclass(frozen=True, slots=True)
class Paired:
    """The differences by seed, in the unit of the measure. ``low`` and ``high``: Student's interval of their mean."""

    differences: Mapping[int, float]
    mean: float
    low: float
    high: float
    p_sign: float
    """Two-sided, over the seeds that differ; 1 where none does."""

    def verdict(self, expected: Literal["more", "less"]) -> Verdict:
        """``shown`` where the whole interval lies on the expected side of 0."""
        if len(self.differences) == 1:
            return "undecided: one seed"
        above, below = self.low > 0, self.high < 0
        if not above and not below:
            return "not shown"
        return "shown" if above == (expected == "more") else "the opposite is shown"


def paired(arm: Mapping[int, float], against: Mapping[int, float]) -> Paired:
    """The differences ``arm - against`` over the seeds that both have. Raises ``ValueError`` where they share none."""
    seeds = sorted(arm.keys() & against.keys())
    if not seeds:
        raise ValueError("the two arms have no seed in common")
    differences = {seed: arm[seed] - against[seed] for seed in seeds}
    values = list(differences.values())
    mean = fmean(values)
    half = _half_width(values)
    n_more, n_less = sum(value > 0 for value in values), sum(value < 0 for value in values)
    p_sign = float(stats.binomtest(n_more, n_more + n_less).pvalue) if n_more + n_less else 1.0
    return Paired(differences, mean, mean - half, mean + half, p_sign)


def _half_width(values: list[float]) -> float:
    """Half the width of Student's interval for the mean; infinite for one value."""
    if len(values) == 1:
        return math.inf
    factor = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return factor * stdev(values) / math.sqrt(len(values))
