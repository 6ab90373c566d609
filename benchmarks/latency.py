"""Wall clock, for orientation: it depends on what else the machine does. No bars."""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.calls import plain_calls, session_calls
from benchmarks.cpu import CpuClock
from benchmarks.plain import PlainProcess
from benchmarks.rows import Row, count_row, interleave, median_row, ratio_row
from benchmarks.task import LIBRARIES, Library, code_of, reference, require_ok, require_right
from sandbox import Observation, SandboxPool, Session

_SIDES = {"600x400": (600, 400), "2000x1500": (2000, 1500)}


def measure_latency(clock: CpuClock, photo: Path, *, quick: bool) -> list[Row]:
    """Start, empty calls, image transfer, and calls of 1, 2 and 4 callers at a time."""
    n_calls = 20 if quick else 100
    with ExitStack() as stack:
        started = time.perf_counter()
        pool = stack.enter_context(SandboxPool())
        group = stack.enter_context(pool.group())
        rows = [count_row("start of a pool, wall", time.perf_counter() - started, "s")]
        session = stack.enter_context(group.session())
        plain = stack.enter_context(PlainProcess("print()", photo))
        for name, call in {"session": partial(session.run, "pass"), "plain process": plain.run}.items():
            # the first half warms up, while the pool starts further sessions ahead
            rows.append(median_row(f"{name}: empty call, wall", _timed(call, 10 * n_calls)[0][5 * n_calls :], "ms"))
        rows += [_transfer_row(clock, session, sides, n_calls) for sides in _SIDES]
    rows += [_wall_row(photo, library, n_calls // 20, 20) for library in LIBRARIES]
    return rows + [row for n_callers in (1, 2, 4) for row in _caller_rows(photo, n_callers, n_calls)]


def _wall_row(photo: Path, library: Library, n_rounds: int, n_calls: int) -> Row:
    """As the caller sees it; the two take turns."""
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


def _transfer_row(clock: CpuClock, session: Session, sides: str, n_calls: int) -> Row:
    """What the image adds to a call: `display` of pixels that are there already."""
    require_ok([session.run(f"picture = Image.fromarray(np.zeros({(*_SIDES[sides][::-1], 3)}, np.uint8))")])
    spent: dict[str, list[float]] = {"pass": [], "display(picture)": []}
    for _ in range(n_calls // 2):
        for code, costs in spent.items():
            started = clock()
            require_ok([session.run(code)])
            costs.append(clock() - started)
    without, shown = spent.values()
    return median_row(
        f"transfer of a {sides} image, CPU", [one - other for one, other in zip(shown, without, strict=True)], "ms"
    )


def _caller_rows(photo: Path, n_callers: int, n_calls: int) -> list[Row]:
    code, expected = code_of("PIL"), reference("PIL", photo)
    with ExitStack() as stack:
        pool = stack.enter_context(SandboxPool())
        group = stack.enter_context(pool.group([photo]))
        sessions = [stack.enter_context(group.session(seed=seed)) for seed in range(n_callers)]
        plain = [stack.enter_context(PlainProcess(code, photo)) for _ in range(n_callers)]
        sandboxed = _concurrent([partial(session.run, code) for session in sessions], n_calls, expected)
        bare = _concurrent([process.run for process in plain], n_calls, expected)
    callers = f"{n_callers} caller{'s' * (n_callers > 1)}"
    note = f"plain: p50 {bare.p50:.1f}, p99 {bare.p99:.1f} ms, {bare.calls_per_second:.0f} calls/s"
    return [
        count_row(f"PIL call, {callers}: p50, wall", sandboxed.p50, "ms", note=note),
        count_row(f"PIL call, {callers}: p99, wall", sandboxed.p99, "ms"),
        count_row(f"PIL calls, {callers}: rate", sandboxed.calls_per_second, "1/s"),
    ]


class _Concurrent:
    def __init__(self, milliseconds: list[float], seconds: float) -> None:
        cuts = statistics.quantiles(milliseconds, n=100, method="inclusive")
        self.p50, self.p99 = cuts[49], cuts[98]
        self.calls_per_second = len(milliseconds) / seconds


def _concurrent(callers: list[Callable[[], Observation | Path]], n_calls: int, expected: bytes) -> _Concurrent:
    for call in callers:
        call()
    with ThreadPoolExecutor(len(callers)) as threads:
        started = time.perf_counter()
        timed = list(threads.map(lambda call: _timed(call, n_calls), callers))
        seconds = time.perf_counter() - started
    require_right([result for _, result in timed], expected)
    return _Concurrent([one for milliseconds, _ in timed for one in milliseconds], seconds)


def _timed(call: Callable[[], Observation | Path], n_calls: int) -> tuple[list[float], Observation | Path]:
    """Milliseconds of each call, and the last result."""
    milliseconds: list[float] = []
    result = call()
    for _ in range(n_calls):
        started = time.perf_counter()
        result = call()
        milliseconds.append(1e3 * (time.perf_counter() - started))
    return milliseconds, result
