"""Proportions of a count with Wilson's interval, and a test of a rate on as few trials as two error rates allow.

Of proportions, 4 of 5 is less certain than 80 of 100.

    test = SequentialTest(low=0.2, high=0.5)
    test.decide(n_right=4, n=4)      # True: the rate is taken for high; None: undecided
    test.n_more(n_right=2, n=4)      # the fewest further trials after which it may be decided; 0: decided
    test.acceptance(0.6)             # exact: how often a rate of 0.6 is taken for low

Wald's sequential probability ratio test of a binomial rate (Wald, 1945, section 5.3), first looked at after ``first``
trials and cut off at ``most``, where the likelier of the two rates wins. Cutting it off changes the error rates a
little, so none is taken from Wald's bounds: ``acceptance`` sums the probabilities of all outcomes.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_Z = 1.959963984540054
"""Of the normal distribution: 95 in 100 lie within."""


class Proportion(NamedTuple):
    """``n`` of ``of``."""

    n: int
    of: int

    @property
    def value(self) -> float | None:
        """0..1; None where there is nothing to count."""
        return self.n / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval at 95 % (Wilson, 1927), usable from one case on; (0, 1) where there is none."""
        if not self.of:
            return 0.0, 1.0
        p, n = self.n / self.of, self.of
        middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z / (1 + _Z**2 / n) * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
        return (0.0 if self.n == 0 else middle - half), (1.0 if self.n == n else middle + half)

    def __str__(self) -> str:
        return f"{self.n / self.of:.0%}" if self.of else "–"


def proportion_of(outcomes: Iterable[bool]) -> Proportion:
    """Count the true ones."""
    cases = list(outcomes)
    return Proportion(sum(cases), len(cases))


@dataclass(frozen=True)
class SequentialTest:
    """Is a rate (0..1) ``low`` or less, or ``high`` or more? Between the two either answer is in order. ``false_high``
    and ``false_low`` (0..0.5) set Wald's bounds: how often a rate of ``low`` may be taken for high, and one of ``high``
    for low; with too small a ``most`` the exact rates are larger. Raises ``ValueError`` for settings of no test."""

    low: float
    high: float
    false_high: float = 0.1
    false_low: float = 0.1
    first: int = 4
    most: int = 32

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < 1:
            raise ValueError(f"rates are 0 < low < high < 1; found low = {self.low}, high = {self.high}")
        if not (0 < self.false_high < 0.5 and 0 < self.false_low < 0.5):
            raise ValueError(f"error rates lie in 0..0.5; found {self.false_high} and {self.false_low}")
        if not 1 <= self.first <= self.most:
            raise ValueError(f"a test looks first at 1 to {self.most} trials; found first = {self.first}")

    def decide(self, n_right: int, n: int) -> bool | None:
        """Return whether the rate is high, by ``n`` trials and nothing else; None while undecided."""
        if n < self.first:
            return None
        evidence = n_right * math.log(self.high / self.low) + (n - n_right) * math.log((1 - self.high) / (1 - self.low))
        if n >= self.most:
            return evidence >= 0
        if evidence >= math.log((1 - self.false_low) / self.false_high):
            return True
        return False if evidence <= math.log(self.false_low / (1 - self.false_high)) else None

    def n_more(self, n_right: int, n: int) -> int:
        """The fewest further trials after which the test may be decided: asked for together, none is in vain."""
        if n < self.first:
            return self.first - n
        if self.decide(n_right, n) is not None:
            return 0
        later = range(1, self.most - n + 1)
        return next(m for m in later if any(self.decide(n_right + right, n + m) is not None for right in (0, m)))

    def acceptance(self, rate: float) -> float:
        """The exact probability that ``rate`` is taken for low."""
        undecided, accepted = {0: 1.0}, 0.0
        for n in range(1, self.most + 1):
            reached: dict[int, float] = {}
            for n_right, probability in undecided.items():
                reached[n_right] = reached.get(n_right, 0.0) + probability * (1 - rate)
                reached[n_right + 1] = reached.get(n_right + 1, 0.0) + probability * rate
            accepted += sum(share for n_right, share in reached.items() if self.decide(n_right, n) is False)
            undecided = {n_right: share for n_right, share in reached.items() if self.decide(n_right, n) is None}
        return accepted

    @cached_property
    def error_rates(self) -> tuple[float, float]:
        """Exact, at the two rates, where they are largest: ``low`` taken for high, ``high`` taken for low."""
        return 1 - self.acceptance(self.low), self.acceptance(self.high)
