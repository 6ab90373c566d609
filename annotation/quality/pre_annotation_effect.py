"""Effect of pre-annotations where the campaign's seed gives them to a random part of the images: those with one against
those for which the policy's record was withheld, as assigned. Intervals are at 95 %, for independent records: Wilson's
of a share, by order statistics of a median, of a difference from both (Newcombe, 1998, method 10; Zou, Donner, 2008).
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from darkroom.annotation.quality.annotators import BREAK_SECONDS
from darkroom.annotation.quality.versions import versions
from darkroom.annotation.rounds.submissions import RecordState
from darkroom.pipelines.verification.proportion import Proportion, proportion_of


class Median(NamedTuple):
    """A median of ``of`` values; None of fewer than six, which do not enclose it at 95 %."""

    value: float | None
    interval: tuple[float, float]
    of: int


class PreAnnotationEffect(NamedTuple):
    """One figure of both parts; ``difference`` is shown minus withheld with its interval, None without cases."""

    measure: str
    shown: Proportion | Median
    withheld: Proportion | Median
    difference: tuple[float, float, float] | None


def measure_effects(states: Sequence[RecordState]) -> tuple[PreAnnotationEffect, ...]:
    """Empty unless both parts have images."""
    parts = [[state for state in states if state.pre_annotation == use] for use in ("shown", "withheld")]
    if not all(parts):
        return ()
    shown, withheld = map(_figures, parts)
    pairs = [(name, figure, withheld[name]) for name, figure in shown.items()]
    return tuple(PreAnnotationEffect(*pair, difference(*pair[1:])) for pair in pairs)


def _figures(states: Sequence[RecordState]) -> dict[str, Proportion | Median]:
    firsts = [first for state in states if (first := next(versions(state), None)) and not first.author.attempt]
    leads = [min(s, BREAK_SECONDS) for first in firsts if (s := first.author.lead_seconds) is not None]
    settled = [first for first in firsts if first.outcome != "waiting"]
    blind = [check.blind_match for first in firsts for check in first.cross_checks]
    return {
        "seconds": median_of(leads),
        "first_pass": proportion_of(first.outcome == "unchanged" for first in settled),
        "accepted": proportion_of(state.stage == "accepted" for state in states if state.stage != "waiting"),
        "rejected": proportion_of(first.outcome == "rejected" for first in settled),
        "escaped": proportion_of(first.expert_verdict == "reject" for first in firsts if first.expert_verdict),
        "blind": proportion_of(matched for matched in blind if matched is not None),
    }


def median_of(values: Sequence[float]) -> Median:
    ordered, n = sorted(values), len(values)
    if n < 6:
        return Median(None, (0.0, math.inf), n)
    rank = max(1, math.floor((n - 1.96 * math.sqrt(n)) / 2))
    return Median(median(ordered), (ordered[rank - 1], ordered[-rank]), n)


def difference(a: Proportion | Median, b: Proportion | Median) -> tuple[float, float, float] | None:
    if a.value is None or b.value is None:
        return None
    (a_low, a_high), (b_low, b_high), gap = a.interval, b.interval, a.value - b.value
    down, up = math.hypot(a.value - a_low, b_high - b.value), math.hypot(a_high - a.value, b.value - b_low)
    return gap, gap - down, gap + up
