"""Progress as lines of a run's log: rows, speed, time left, money."""

import time
from collections.abc import Callable

import dagster as dg

from pipelines.progress import Pace, Stand

_STEPS = 10
_SECONDS = 30.0


def progress_lines(context: dg.AssetExecutionContext) -> Callable[[Stand], None]:
    """Writes a line for every tenth of the rows, and at least every half minute while rows are finished."""
    pace, seen, at = Pace(), 0, time.monotonic()

    def progress(stand: Stand) -> None:
        nonlocal seen, at
        step, now = stand.n_done * _STEPS // max(stand.n_rows, 1), time.monotonic()
        if step > seen or now - at >= _SECONDS:
            seen, at = step, now
            context.log.info(pace.words(stand))

    return progress
