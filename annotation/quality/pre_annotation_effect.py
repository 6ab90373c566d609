"""Effect of pre-annotations, where the campaign's seed gives them to a random part of the images: first versions and
records with one against those without. Only images for which the policy wrote a record are compared, as assigned.

Intervals are at 95 %: Wilson's of a share, by order statistics of a median, and of a difference from the two intervals
(Newcombe, 1998, method 10; Zou and Donner, 2008). Records count as independent.
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple, Self

from darkroom.annotation.quality.annotators import BREAK_SECONDS
from darkroom.annotation.quality.versions import versions
from darkroom.annotation.rounds.submissions import RecordState
from darkroom.pipelines.verification.proportion import Proportion, proportion_of

_FEWEST = 6


class Median(NamedTuple):
    """A median of ``of`` values."""

    value: float | None
    """None of fewer than six: no two of them enclose the median at 95 %."""
    interval: tuple[float, float]
    of: int

    @classmethod
    def of_values(cls, values: Sequence[float]) -> Self:
        ordered, n = sorted(values), len(values)
        if n < _FEWEST:
            return cls(None, (0.0, math.inf), n)
        rank = max(1, math.floor((n - 1.96 * math.sqrt(n)) / 2))
        return cls(median(ordered), (ordered[rank - 1], ordered[-rank]), n)


class Difference(NamedTuple):
    """A figure with the policy's record minus the one without."""

    value: float
    low: float
    high: float


class Effect(NamedTuple):
    """One figure of both parts of the images."""

    measure: str
    shown: Proportion | Median
    withheld: Proportion | Median

    @property
    def difference(self) -> Difference | None:
        """None where a part has no cases."""
        a, b = self.shown, self.withheld
        if a.value is None or b.value is None:
            return None
        (a_low, a_high), (b_low, b_high), value = a.interval, b.interval, a.value - b.value
        down, up = math.hypot(a.value - a_low, b_high - b.value), math.hypot(a_high - a.value, b.value - b_low)
        return Difference(value, value - down, value + up)


def measure_effects(states: Sequence[RecordState]) -> tuple[Effect, ...]:
    """Empty unless both parts have images."""
    parts = [[state for state in states if state.pre_annotation == use] for use in ("shown", "withheld")]
    if not all(parts):
        return ()
    shown, withheld = map(_figures, parts)
    return tuple(Effect(measure, shown[measure], withheld[measure]) for measure in shown)


def _figures(states: Sequence[RecordState]) -> dict[str, Proportion | Median]:
    firsts = [first for state in states if (first := next(versions(state), None)) and not first.author.attempt]
    leads = [first.author.lead_seconds for first in firsts]
    settled = [first for first in firsts if first.outcome != "waiting"]
    checks = [check for first in firsts for check in first.cross_checks]
    return {
        "seconds": Median.of_values([min(seconds, BREAK_SECONDS) for seconds in leads if seconds is not None]),
        "first_pass": proportion_of(first.outcome == "unchanged" for first in settled),
        "accepted": proportion_of(state.stage == "accepted" for state in states if state.stage != "waiting"),
        "rejected": proportion_of(first.outcome == "rejected" for first in settled),
        "escaped": proportion_of(first.expert_verdict == "reject" for first in firsts if first.expert_verdict),
        "blind": proportion_of(check.blind_match for check in checks if check.blind_match is not None),
    }
