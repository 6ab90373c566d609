"""Proportions of a count with Wilson's interval: 4 of 5 is less certain than 80 of 100."""

import math
from collections.abc import Iterable
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
        """Wilson's score interval at 95 % (Wilson, 1927): inside 0..1 and usable from one case on.

        Everything (0, 1) where there is nothing to count.
        """
        if not self.of:
            return 0.0, 1.0
        p, n = self.n / self.of, self.of
        middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z / (1 + _Z**2 / n) * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
        return (0.0 if self.n == 0 else middle - half), (1.0 if self.n == n else middle + half)

    def __str__(self) -> str:
        return f"{self.n / self.of:.0%}" if self.of else "–"


def proportion_of(outcomes: Iterable[bool]) -> Proportion:
    """How many are true."""
    cases = list(outcomes)
    return Proportion(sum(cases), len(cases))
