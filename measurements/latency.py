"""Wall clock, for orientation: it depends on what else the machine does. No bars."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from darkroom.sandbox import Observation, SandboxPool
from measurements.calls import plain_calls, session_calls
from measurements.cpu import CpuClock
from measurements.plain import PlainProcess
from measurements.rows import Row, count_row, interleave, median_row, ratio_row
from measurements.task import LIBRARIES, Library, code_of, reference, require_right


def measure_latency(clock: CpuClock, photo: Path, *, quick: bool) -> list[Row]:
    """Empty calls, the task, and the task of four callers at a time."""
    n_calls, rows = 20 if quick else 100, list[Row]()
    with ExitStack() as stack:
        group = stack.enter_context(stack.enter_context(SandboxPool()).group())
        session = stack.enter_context(group.session())
        plain = stack.enter_context(PlainProcess("print()", photo))
        for name, call in {"session": partial(session.run, "pass"), "plain process": plain.run}.items():
            # the first half warms up, while the pool starts further sessions ahead
            rows.append(median_row(f"{name}: empty call, wall", _timed(call, 10 * n_calls)[0][5 * n_calls :], "ms"))
    rows += [_wall_row(photo, library, n_calls // 20, 20) for library in LIBRARIES]
    return [*rows, _rate_row(photo, 4, n_calls)]


def _wall_row(photo: Path, library: Library, n_rounds: int, n_calls: int) -> Row:
    """Time as the caller sees it; the two take turns."""
    code, expected = code_of(library), reference(library, photo)
    wall = CpuClock("wall", lambda: 1e3 * time.perf_counter())
    with ExitStack() as stack:
        plain = stack.enter_context(PlainProcess(code, photo))
        group = stack.enter_context(stack.enter_context(SandboxPool()).group([photo]))
        session = stack.enter_context(group.session())
        variants = {
            "plain": partial(plain_calls, plain, n_calls, expected),
            "shared": partial(session_calls, session, code, n_calls, expected),
        }
        spent = interleave(wall, variants, max(n_rounds, 3))
    return ratio_row(f"{library}: session, shared image, wall", spent["plain"], spent["shared"])


def _rate_row(photo: Path, n_callers: int, n_calls: int) -> Row:
    code, expected = code_of("PIL"), reference("PIL", photo)
    with ExitStack() as stack:
        group = stack.enter_context(stack.enter_context(SandboxPool()).group([photo]))
        sessions = [stack.enter_context(group.session(seed=seed)) for seed in range(n_callers)]
        plain = [stack.enter_context(PlainProcess(code, photo)) for _ in range(n_callers)]
        sandboxed = _calls_per_second([partial(session.run, code) for session in sessions], n_calls, expected)
        bare = _calls_per_second([process.run for process in plain], n_calls, expected)
    return count_row(f"PIL calls, {n_callers} callers: rate", sandboxed, "1/s", note=f"plain: {bare:.0f} calls/s")


def _calls_per_second(callers: list[Callable[[], Observation | Path]], n_calls: int, expected: bytes) -> float:
    for call in callers:
        call()
    with ThreadPoolExecutor(len(callers)) as threads:
        started = time.perf_counter()
        timed = list(threads.map(lambda call: _timed(call, n_calls), callers))
        seconds = time.perf_counter() - started
    require_right([result for _, result in timed], expected)
    return n_calls * len(callers) / seconds


def _timed(call: Callable[[], Observation | Path], n_calls: int) -> tuple[list[float], Observation | Path]:
    """Milliseconds of each call, and the last result."""
    milliseconds: list[float] = []
    result = call()
    for _ in range(n_calls):
        started = time.perf_counter()
        result = call()
        milliseconds.append(1e3 * (time.perf_counter() - started))
    return milliseconds, result
