"""How far a long stage is, in words: rows, speed, time left, and what it costs.

2,400 of 10,000 rows (24 %), 38.2 a second, about 3 min left; $1.24 so far, about $5.17 in all
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Stand(NamedTuple):
    """Where a stage stands. ``usd``: spent in this run; None where nothing has a price."""

    n_done: int
    n_rows: int
    usd: float | None = None


class Pace:
    """Words for one stand after another, from the first row on. ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began = clock, clock()

    def words(self, stand: Stand) -> str:
        """The line for people."""
        seconds = max(self._clock() - self._began, 1e-9)
        share = stand.n_done / stand.n_rows if stand.n_rows else 1.0
        rate = stand.n_done / seconds
        said = f"{stand.n_done:,} of {stand.n_rows:,} rows ({share:.0%}), {rate:,.1f} a second"
        if 0 < stand.n_done < stand.n_rows:
            said += f", about {_duration((stand.n_rows - stand.n_done) / rate)} left"
        if stand.usd:
            said += f"; ${stand.usd:,.2f} so far, about ${stand.usd / share:,.2f} in all"
        return said


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
