"""Shares with their 95 % intervals, and what several answers to one question come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
_Z = 1.959963984540054
_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of ``n`` independent things with its 95 % interval; both ends are the mean where there is nothing."""

    mean: float
    low: float
    high: float
    n: int
    method: Literal["wilson", "bootstrap", "none"]


def wilson(n_yes: int, n: int) -> Estimate:
    """A share of ``n`` independent things (Wilson 1927): it stays in 0..1 and does not vanish at 0 and 1."""
    if not n:
        return Estimate(0.0, 0.0, 0.0, 0, "none")
    share, spread = n_yes / n, _Z * _Z / n
    centre = (share + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    # at 0 and at n the ends are the share itself, which rounding misses
    return Estimate(share, max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)), n, "wilson")


def bootstrap(groups: Sequence[Sequence[float]]) -> Estimate:
    """The mean over all values; whole groups are drawn again, because values of one group are not independent."""
    if not groups:
        return Estimate(0.0, 0.0, 0.0, 0, "none")
    sums = np.array([sum(group) for group in groups], np.float64)
    counts = np.array([len(group) for group in groups], np.float64)
    mean = float(sums.sum() / counts.sum())
    draw = np.random.default_rng(0)
    means = [_redrawn(draw, sums, counts) for _ in range(_RESAMPLES)]
    low, high = np.quantile(means, (0.025, 0.975))
    return Estimate(mean, float(low), float(high), len(groups), "bootstrap")


def estimate(groups: Sequence[Sequence[float]]) -> Estimate:
    """Wilson's interval where every group is one yes or no, else the bootstrap's over groups.

    Groups that are all yes or all no leave nothing to draw: they are counted as one thing each.
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


def _redrawn(draw: np.random.Generator, sums: Values, counts: Values) -> float:
    taken = draw.integers(0, len(sums), len(sums))
    return float(sums[taken].sum() / counts[taken].sum())
