"""A line of the table: what was measured, its spread, and the bar; and how variants are measured fairly."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from measurements.cpu import CpuClock


@dataclass(frozen=True)
class Bar:
    kind: Literal["at least", "at most"]
    value: float

    def __str__(self) -> str:
        return f"{'>=' if self.kind == 'at least' else '<='} {self.value:g}"


@dataclass(frozen=True)
class Row:
    what: str
    measured: float
    unit: str
    least: float
    most: float
    bar: Bar | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.measured >= self.bar.value if self.bar.kind == "at least" else self.measured <= self.bar.value


class Batch(NamedTuple):
    """The work of a variant: so many calls, and how to check their results after the clock has been read."""

    n_calls: int
    check: Callable[[], None]


def count_row(what: str, measured: float, unit: str, bar: Bar | None = None, note: str = "") -> Row:
    return Row(what, measured, unit, measured, measured, bar, note)


def median_row(what: str, values: list[float], unit: str, bar: Bar | None = None, note: str = "") -> Row:
    """Median, and the middle half of the values as the spread."""
    quarters = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return Row(what, statistics.median(values), unit, quarters[0], quarters[2], bar, note)


def ratio_row(what: str, baseline: list[float], variant: list[float], bar: Bar | None = None) -> Row:
    """A factor: the baseline's time by the variant's of the same round."""
    note = f"{statistics.median(variant):.2f} ms against {statistics.median(baseline):.2f} ms"
    ratios = [one / other for one, other in zip(baseline, variant, strict=True)]
    return median_row(what, ratios, "x", bar, note)


def interleave(clock: CpuClock, variants: Mapping[str, Callable[[], Batch]], n_rounds: int) -> dict[str, list[float]]:
    """CPU milliseconds per call of each variant, round by round, in the order A B A B.

    The machine's speed changes during a run: only values of one round may be compared. The first round warms up.
    """
    found: dict[str, list[float]] = {name: [] for name in variants}
    for round_number in range(n_rounds + 1):
        for name, variant in variants.items():
            started = clock()
            batch = variant()
            spent = clock() - started
            batch.check()
            if round_number:
                found[name].append(spent / batch.n_calls)
    return found
