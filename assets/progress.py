"""Progress as lines of a run's log, and in the terminal where the run is a command's: rows, speed, time left, money."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import dagster as dg

from pipelines.progress import Pace, Stand

_STEPS = 10
_SECONDS = 30.0
Shown = Callable[[str], None]
_terminal: ContextVar[Shown | None] = ContextVar("terminal", default=None)


@contextmanager
def shown_by(show: Shown) -> Iterator[None]:
    """What the runs of this process say meanwhile goes to ``show``, too, as often as rows are finished."""
    token = _terminal.set(show)
    try:
        yield
    finally:
        _terminal.reset(token)


def progress_lines(context: dg.AssetExecutionContext) -> Callable[[Stand], None]:
    """Writes a line for every tenth of the rows, and at least every half minute while rows are finished."""
    pace, seen, at = Pace(), 0, time.monotonic()
    asset, show = context.asset_key.to_user_string(), _terminal.get()

    def progress(stand: Stand) -> None:
        nonlocal seen, at
        step, now = stand.n_done * _STEPS // max(stand.n_rows, 1), time.monotonic()
        if show is not None:
            show(f"{asset}: {pace.words(stand)}")
        if step > seen or now - at >= _SECONDS:
            seen, at = step, now
            context.log.info(pace.words(stand))

    return progress


def progress_log(context: dg.AssetExecutionContext) -> Callable[[int, int], None]:
    """The same for stages that know rows only."""
    told = progress_lines(context)
    return lambda n_done, n_rows: told(Stand(n_done, n_rows))
