"""Agreement between annotators: Krippendorff's alpha for categories, one-to-one matching for boxes.

With n_uc the number of times that unit u was called c, m_u the number of its values, and n_c and n the sums over all
units of two values or more:

    observed = sum_u (m_u² - sum_c n_uc²) / (m_u - 1) / n
    expected = (n² - sum_c n_c²) / (n (n - 1))
    alpha    = 1 - observed / expected

This is K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), nominal metric, with the sums over pairs
of values written as squares. 1 is full agreement, 0 chance level, below 0 worse. Recommended: 0.8; tentative: 0.667.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from darkroom.annotation.quality.versions import versions
from darkroom.annotation.rounds.submissions import RecordState
from darkroom.pipelines.records.geometry import Box, iou
from darkroom.pipelines.verification.proportion import Proportion, proportion_of

_N_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Agreement:
    """Alpha with its 95 % bootstrap interval over units."""

    alpha: float
    low: float
    high: float
    n_units: int
    """Units with two values or more."""

    def __str__(self) -> str:
        return f"{self.alpha:.2f} ({self.low:.2f} to {self.high:.2f})"


def alpha(units: Sequence[Sequence[Hashable | None]], *, seed: int = 0) -> Agreement | None:
    """Agreement on ``units``: the values of each unit's raters, in any order; None for a missing one. None where no
    unit has two values, or all are the same. The bootstrap is seeded and skips resamples with a single value."""
    present = [[value for value in unit if value is not None] for unit in units]
    pairable = [unit for unit in present if len(unit) > 1]
    # units with the same values are one kind, so that a resample is a number per kind
    kinds = Counter(frozenset(Counter(unit).items()) for unit in pairable)
    values = list({value for kind in kinds for value, _ in kind})
    counts = np.array([[dict(kind).get(value, 0) for value in values] for kind in kinds], float)
    counts = counts.reshape(len(kinds), len(values))
    n_of_kind = np.array([list(kinds.values())], np.int64)
    observed = _alphas(counts, n_of_kind)
    if not observed.size:
        return None
    resamples = np.random.default_rng(seed).multinomial(len(pairable), n_of_kind[0] / len(pairable), _N_RESAMPLES)
    low, high = np.percentile(_alphas(counts, resamples), [2.5, 97.5])
    return Agreement(float(observed[0]), float(low), float(high), len(pairable))


def _alphas(counts: NDArray[np.float64], n_of_kind: NDArray[np.int64]) -> NDArray[np.float64]:
    """Alpha of every row of ``n_of_kind``; ``counts``: how often each value (column) is in units of a kind (row)."""
    m = counts.sum(axis=1)
    disagreement, of_value = (m**2 - (counts**2).sum(axis=1)) / (m - 1), n_of_kind @ counts
    n = of_value.sum(axis=1)
    expected = n**2 - (of_value**2).sum(axis=1)
    defined, observed = expected > 0, (n - 1) * (n_of_kind @ disagreement)
    return cast(NDArray[np.float64], 1 - observed[defined] / expected[defined])


def mean_iou(before: Sequence[Box], after: Sequence[Box]) -> float | None:
    """Mean overlap of the one-to-one pairs with the largest sum; an unmatched box counts as 0. None without boxes."""
    from scipy.optimize import linear_sum_assignment  # takes half a second

    ious = np.array([[iou(a, b) for b in after] for a in before], float).reshape(len(before), len(after))
    matched: list[float] = ious[linear_sum_assignment(ious, maximize=True)].tolist()
    n = max(len(before), len(after))
    return sum(matched) / n if n else None


class PanelAgreement(NamedTuple):
    """Agreement on one round's versions with two verdicts or more; ``category`` is empty for all of them."""

    round: str
    category: str
    unanimous: Proportion
    """Versions with one verdict of all."""
    alpha: Agreement | None
    """Krippendorff's, nominal, on accept, fix and reject; None where it is undefined."""


def measure_panels(states: Iterable[RecordState]) -> tuple[PanelAgreement, ...]:
    """Experts first; of each round all versions, then by category, the most frequent first."""
    panels: dict[str, dict[str, list[list[str]]]] = {"accept": {}, "cross_check": {}}
    for state in states:
        categories = ("", state.fields.category if state.fields else "")
        for version in versions(state):
            for round, events in (("accept", version.acceptances), ("cross_check", version.cross_checks)):
                for name in categories if len(events) > 1 else ():
                    panels[round].setdefault(name, []).append([event.verdict for event in events])
    return tuple(
        PanelAgreement(round, name, proportion_of(len(set(unit)) == 1 for unit in units), alpha(units))
        for round, by_category in panels.items()
        for name, units in sorted(by_category.items(), key=lambda pair: (pair[0] != "", -len(pair[1]), pair[0]))
    )
