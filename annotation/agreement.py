"""Krippendorff's alpha for names: how far people agree beyond chance, whoever judged what and however often.

With n_uc the number of times that unit u was called c, m_u the number of its values, and n_c and n the sums over all
units of two values or more:

    observed = sum_u (m_u² - sum_c n_uc²) / (m_u - 1) / n
    expected = (n² - sum_c n_c²) / (n (n - 1))
    alpha    = 1 - observed / expected

which is K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), nominal metric, with the sums over pairs
of values written as squares. 1 is full agreement, 0 what chance gives, below 0 is worse. Krippendorff asks for 0.8, and
0.667 for tentative conclusions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_N_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Agreement:
    """Alpha, and the bounds between which it lies in 95 of 100 resamples of the units."""

    alpha: float
    low: float
    high: float
    n_units: int
    """Units with two values or more."""
    n_values: int

    def __str__(self) -> str:
        return f"{self.alpha:.2f} ({self.low:.2f} to {self.high:.2f})"


def alpha(units: Sequence[Sequence[Hashable | None]], *, seed: int = 0) -> Agreement | None:
    """Agreement on ``units``: per unit the values that its raters gave, None where one gave none, in any order;
    there are few different ones.

    None where alpha is not defined: no unit has two values, or all values are the same, so that nothing could have
    been confused. The interval is of a seeded bootstrap over units; resamples of one value only are left out of it.
    """
    present = [[value for value in unit if value is not None] for unit in units]
    pairable = [unit for unit in present if len(unit) > 1]
    kinds = Counter(frozenset(Counter(unit).items()) for unit in pairable)  # units with the same values are one kind
    counted, n_of_kind = _Kinds(list(kinds)), np.array([list(kinds.values())], np.int64)
    whole = counted.alphas(n_of_kind)
    if not whole.size:
        return None
    draws = np.random.default_rng(seed).multinomial(len(pairable), n_of_kind[0] / len(pairable), _N_RESAMPLES)
    low, high = np.percentile(counted.alphas(draws), [2.5, 97.5])
    return Agreement(float(whole[0]), float(low), float(high), len(pairable), sum(map(len, pairable)))


class _Kinds:
    """Kinds of units, so that a resample is a number per kind."""

    def __init__(self, kinds: Sequence[frozenset[tuple[Hashable, int]]]) -> None:
        codes = {value: code for code, value in enumerate({value for kind in kinds for value, _ in kind})}
        self._counts = np.zeros((len(kinds), len(codes)))
        for place, kind in enumerate(kinds):
            for value, count in kind:
                self._counts[place, codes[value]] = count
        self._disagreement = np.array([_disagreement([count for _, count in kind]) for kind in kinds], float)

    def alphas(self, n_of_kind: NDArray[np.int64]) -> NDArray[np.float64]:
        """One for every row, a resample with so many units of each kind; rows of one value only have none."""
        of_value = n_of_kind @ self._counts
        n = of_value.sum(axis=1)
        expected = n**2 - (of_value**2).sum(axis=1)
        defined = expected > 0
        observed = (n - 1) * (n_of_kind @ self._disagreement)
        alphas: NDArray[np.float64] = 1 - observed[defined] / expected[defined]
        return alphas


def _disagreement(counts: Sequence[int]) -> float:
    m = sum(counts)
    return (m**2 - sum(count**2 for count in counts)) / (m - 1)
