"""Sessions beside a pool of persistent workers: a Python process for each session, which imports the same libraries."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from darkroom.sandbox import SandboxPool
from measurements.cpu import CpuClock
from measurements.fleet import N_ROLLOUTS, available_mb
from measurements.plain import PlainProcess
from measurements.rows import Row, count_row
from measurements.task import code_of

_EMPTY = {"sessions": "pass", "workers": "print()"}
_MILLION, _MS_PER_HOUR = 1_000_000, 3.6e6


def measure_workers(clock: CpuClock, photo: Path, *, quick: bool) -> list[Row]:
    """So many of each, alive at a time: their start, their memory, an empty call and a crop."""
    n_alive, n_rounds = (16, 3) if quick else (64, 10)
    return [
        row
        for kind, start in {"sessions": _start_sessions, "workers": _start_workers}.items()
        for row in _rows_of(clock, photo, kind, start, n_alive, n_rounds)
    ]


Start = Callable[[ExitStack, Path, str, int], list[Callable[[], object]]]


def _rows_of(clock: CpuClock, photo: Path, kind: str, start: Start, n_alive: int, n_rounds: int) -> list[Row]:
    name, rows, each = f"{n_alive} {kind}", list[Row](), {}
    for what, code in {"empty call": _EMPTY[kind], "PIL crop": code_of("PIL")}.items():
        with ExitStack() as stack:
            free, began, spent = available_mb(), time.perf_counter(), clock()
            calls = start(stack, photo, code, n_alive)
            for call in calls:
                call()
            seconds, cpu, megabytes = time.perf_counter() - began, clock() - spent, free - available_mb()
            spent = clock()
            for _ in range(n_rounds):
                for call in calls:
                    call()
            each[what] = (clock() - spent) / (n_rounds * n_alive)
        rows.append(count_row(f"{name}: {what}, CPU", each[what], "ms"))
    return [
        count_row(f"{name}: start and first crop of all, wall", seconds, "s", note=f"{cpu / 1e3:.1f} s of CPU"),
        count_row(f"{name}: memory after a crop, each", megabytes / n_alive, "MB", note="what the machine has less"),
        count_row(f"1,000 {kind}: memory, reckoned from that", megabytes / n_alive * 1000 / 1024, "GiB"),
        *rows,
        count_row(f"1 million crops by {kind}, CPU", each["PIL crop"] * _MILLION / _MS_PER_HOUR, "hours"),
    ]


def _start_sessions(stack: ExitStack, photo: Path, code: str, n_alive: int) -> list[Callable[[], object]]:
    pool = stack.enter_context(SandboxPool())
    groups = [stack.enter_context(pool.group([photo], rollouts=N_ROLLOUTS)) for _ in range(n_alive // N_ROLLOUTS)]
    return [partial(group.session().run, code) for group in groups for _ in range(N_ROLLOUTS)]


def _start_workers(stack: ExitStack, photo: Path, code: str, n_alive: int) -> list[Callable[[], object]]:
    return [stack.enter_context(PlainProcess(code, photo)).run for _ in range(n_alive)]
