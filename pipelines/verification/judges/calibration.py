"""How far a judge can be trusted: its votes against people's labels, and the threshold for a wanted precision.

A label says whether the row is good; a score is the judge's share of yes votes. "Positive" is what the judge lets pass.
Intervals are percentiles of a seeded bootstrap over rows, so the same labels give the same card.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sandbox.errors import UserError

_N_RESAMPLES = 2000
_LEAST_LABELS = 20
MAJORITY = 0.505
"""The threshold without a target: more than half of up to 99 votes."""

Labels = NDArray[np.bool_]
"""One per row, or a row of them per resample: measures go along the last axis."""
Rates = NDArray[np.float64]


class CalibrationError(UserError):
    """There are too few labels, or none of one kind: what was found, what is needed."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the bounds between which it lies in 95 of 100 resamples; NaN where it is not defined."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, slots=True)
class Calibration:
    """A judge at one threshold: a row passes when its score is at least that."""

    threshold: float
    n_labels: int
    n_good: int
    precision: Interval
    """Of the rows that pass, those that people call good."""
    recall: Interval
    """Of the good rows, those that pass."""
    kappa: Interval
    """Cohen's: agreement beyond chance, 1 at best."""
    target_precision: float | None = None
    """What the threshold was chosen for; None where it was given."""


def calibrate(
    scores: Sequence[float], labels: Sequence[bool], *, threshold: float = MAJORITY, seed: int = 0
) -> Calibration:
    """The judge at a given threshold. Raises ``CalibrationError`` for fewer than 20 labels or labels of one kind."""
    score, label = _checked(scores, labels)
    passes = score >= threshold
    precision, recall, kappa = (_interval(measure, passes, label, seed) for measure in (_precision, _recall, _kappa))
    return Calibration(threshold, len(label), int(label.sum()), precision, recall, kappa)


def calibrate_for(
    scores: Sequence[float], labels: Sequence[bool], *, target_precision: float, seed: int = 0
) -> Calibration:
    """The judge at the lowest threshold whose precision is ``target_precision``: it lets the most rows pass.

    Raises ``CalibrationError`` when no threshold reaches it, naming the best.
    """
    score, label = _checked(scores, labels)
    reached = {float(threshold): float(_precision(score >= threshold, label)) for threshold in np.unique(score)}
    enough = [threshold for threshold, precision in reached.items() if precision >= target_precision]
    if not enough:
        best = max(reached, key=lambda threshold: reached[threshold])
        raise CalibrationError(
            f"no threshold reaches a precision of {target_precision:g}; the best is {reached[best]:.3f} at {best:g}. "
            "Use more votes, a better judge or prompt, or a lower target"
        )
    return replace(calibrate(scores, labels, threshold=min(enough), seed=seed), target_precision=target_precision)


def _checked(scores: Sequence[float], labels: Sequence[bool]) -> tuple[NDArray[np.float64], Labels]:
    if len(scores) != len(labels):
        raise CalibrationError(f"every score needs one label; found {len(scores)} scores and {len(labels)} labels")
    if len(labels) < _LEAST_LABELS:
        raise CalibrationError(f"{len(labels)} labels say nothing; label at least {_LEAST_LABELS} rows")
    score, label = np.asarray(scores, float), np.asarray(labels, bool)
    if label.all() or not label.any():
        kind = "good" if label.all() else "bad"
        raise CalibrationError(f"all {len(label)} labels say {kind}; a judge is measured on both kinds")
    if not np.isfinite(score).all():
        raise CalibrationError("a score is not a finite number")
    return score, label


def _precision(passes: Labels, label: Labels) -> Rates:
    return _share((passes & label).sum(axis=-1), passes.sum(axis=-1))


def _recall(passes: Labels, label: Labels) -> Rates:
    return _share((passes & label).sum(axis=-1), label.sum(axis=-1))


def _kappa(passes: Labels, label: Labels) -> Rates:
    agreed = (passes == label).mean(axis=-1)
    p, q = passes.mean(axis=-1), label.mean(axis=-1)
    by_chance = p * q + (1 - p) * (1 - q)
    return _share(agreed - by_chance, 1 - by_chance)


def _share(part: Rates, whole: Rates) -> Rates:
    """NaN where there is no whole."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, np.divide(part, whole), np.nan)


def _interval(measure: Callable[[Labels, Labels], Rates], passes: Labels, label: Labels, seed: int) -> Interval:
    draws = np.random.default_rng(seed).integers(0, len(label), (_N_RESAMPLES, len(label)))
    resampled = measure(passes[draws], label[draws])
    defined = resampled[~np.isnan(resampled)]
    low, high = np.percentile(defined, [2.5, 97.5]) if defined.size else (float("nan"), float("nan"))
    return Interval(float(measure(passes, label)), float(low), float(high))
