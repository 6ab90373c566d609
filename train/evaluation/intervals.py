"""Means with 95 % intervals, and pass@k."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from darkroom.pipelines.verification.proportion import Proportion

_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over ``n`` independent units with its 95 % interval; all zero for none."""

    mean: float
    low: float
    high: float
    n: int
    method: Literal["wilson", "bootstrap", "none"]


def wilson(n_yes: int, n: int) -> Estimate:
    """A proportion of ``n`` independent units (Wilson 1927): within 0..1, and of positive width at 0 and 1."""
    if not n:
        return Estimate(0.0, 0.0, 0.0, 0, "none")
    low, high = Proportion(n_yes, n).interval
    return Estimate(n_yes / n, low, high, n, "wilson")


def bootstrap(groups: Sequence[Sequence[float]]) -> Estimate:
    """The mean over all values; whole groups are resampled, because values within a group are not independent."""
    if not groups:
        return Estimate(0.0, 0.0, 0.0, 0, "none")
    sums = np.array([sum(group) for group in groups], np.float64)
    counts = np.array([len(group) for group in groups], np.float64)
    mean = float(sums.sum() / counts.sum())
    draw = np.random.default_rng(0)
    samples = (draw.integers(0, len(sums), len(sums)) for _ in range(_RESAMPLES))
    means = [float(sums[indices].sum() / counts[indices].sum()) for indices in samples]
    low, high = np.quantile(means, (0.025, 0.975))
    return Estimate(mean, float(low), float(high), len(groups), "bootstrap")


def estimate(groups: Sequence[Sequence[float]]) -> Estimate:
    """Wilson's interval where every group is one yes or no, else the bootstrap's over groups.

    When all values agree there is nothing to resample: each group counts once.
    """
    values = [value for group in groups for value in group]
    is_one_each = all(len(group) == 1 for group in groups) and all(value in (0.0, 1.0) for value in values)
    if is_one_each or set(values) in ({0.0}, {1.0}):
        return wilson(sum(group[0] == 1.0 for group in groups), len(groups))
    return bootstrap(groups)


def pass_at_k(n: int, n_right: int, k: int) -> float:
    """The chance that of ``k`` answers drawn from ``n`` at least one is right: ``1 - C(n - c, k) / C(n, k)``.

    Unbiased (Chen et al. 2021, eq. 1; FIGR §4.1). Raises ``ValueError`` for ``k`` beyond ``n``.
    """
    if not 1 <= k <= n:
        raise ValueError(f"pass@{k} needs at least {k} answers to a question; there are {n}")
    return 1.0 - math.comb(n - n_right, k) / math.comb(n, k)
