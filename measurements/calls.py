"""CPU per call: sessions that share the image, sessions that decode it, whole lives, and interpreters of their own."""

import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from darkroom.sandbox import Observation, SandboxPool, Session
from measurements.cpu import CpuClock
from measurements.plain import PlainProcess, run_fresh
from measurements.rows import Bar, Batch, Row, interleave, median_row, ratio_row
from measurements.task import COPY_IMAGE, LIBRARIES, Library, code_of, reference, require_ok, require_right

_SHARED_BARS: dict[Library, Bar] = {"PIL": Bar("at least", 1.7), "cv2": Bar("at least", 2.7)}
_N_ROLLOUTS, _N_CALLS = 8, 3
_SECONDS_TO_END = 0.05  # a group's process ends after `close` has returned


def measure_calls(clock: CpuClock, photo: Path, *, quick: bool) -> list[Row]:
    """A persistent session and whole lives against one plain process that has everything imported."""
    n_rounds, n_calls = (3, 10) if quick else (11, 20)
    return [row for library in LIBRARIES for row in _library_rows(clock, photo, library, n_rounds, n_calls)]


def measure_fresh(clock: CpuClock, photo: Path, *, quick: bool) -> list[Row]:
    """A persistent session against an interpreter per call."""
    expected = reference("PIL", photo)
    with SandboxPool() as pool, pool.group([photo]) as group, group.session() as session:
        variants = {
            "fresh": partial(_fresh_call, photo, expected),
            "shared": partial(session_calls, session, code_of("PIL"), 20, expected),
        }
        cpu = interleave(clock, variants, 2 if quick else 7)
    what = "PIL: session, against a fresh `python -c` per call"
    return [ratio_row(what, cpu["fresh"], cpu["shared"], Bar("at least", 50))]


def measure_spawn(clock: CpuClock, photo: Path, *, quick: bool) -> list[Row]:
    """The life of a session that does nothing."""
    n_rounds, n_sessions = (3, 10) if quick else (15, 20)
    waits: list[float] = []
    with SandboxPool() as pool, pool.group([photo]) as group:

        def live_and_die() -> Batch:
            for _ in range(n_sessions):
                started = time.perf_counter()
                with group.session() as session:
                    waits.append(1e3 * (time.perf_counter() - started))
                    require_ok([session.run("pass")])
                    clock()  # for the counter that must look before the end
            return Batch(n_sessions, lambda: None)

        cpu = interleave(clock, {"spawn": live_and_die}, n_rounds)
    return [
        median_row("spawn + empty call + kill, CPU", cpu["spawn"], "ms", Bar("at most", 18)),
        median_row("spawn as the caller sees it, wall", waits[n_sessions:], "ms"),
    ]


def _library_rows(clock: CpuClock, photo: Path, library: Library, n_rounds: int, n_calls: int) -> list[Row]:
    expected, code = reference(library, photo), code_of(library)
    with ExitStack() as stack:
        plain = stack.enter_context(PlainProcess(code, photo))
        pool = stack.enter_context(SandboxPool())
        group = stack.enter_context(pool.group([photo]))
        session = stack.enter_context(group.session())
        decoding = stack.enter_context(group.session())
        decoding.run(COPY_IMAGE)
        variants = {
            "plain": partial(plain_calls, plain, n_calls, expected),
            "shared": partial(session_calls, session, code, n_calls, expected),
            "decoding": partial(session_calls, decoding, code_of(library, "'own.jpg'"), n_calls, expected),
            "life": partial(_whole_life, pool, photo, code, expected),
        }
        cpu = interleave(clock, variants, n_rounds)
    plain_cpu = cpu["plain"]
    life = f"{library}: whole life, decode + {_N_ROLLOUTS} rollouts x {_N_CALLS} calls"
    return [
        ratio_row(f"{library}: session, shared image", plain_cpu, cpu["shared"], _SHARED_BARS[library]),
        ratio_row(f"{library}: session, each open decodes", plain_cpu, cpu["decoding"], Bar("at least", 0.85)),
        ratio_row(life, plain_cpu, cpu["life"], Bar("at least", 1.0)),
    ]


def plain_calls(process: PlainProcess, n_calls: int, expected: bytes) -> Batch:
    paths = {process.run() for _ in range(n_calls)}
    return Batch(n_calls, lambda: require_right(paths, expected))


def session_calls(session: Session, code: str, n_calls: int, expected: bytes) -> Batch:
    observations = [session.run(code) for _ in range(n_calls)]
    return Batch(n_calls, lambda: require_right(observations, expected))


def _whole_life(pool: SandboxPool, photo: Path, code: str, expected: bytes) -> Batch:
    observations: list[Observation] = []
    with pool.group([photo]) as group:
        for seed in range(_N_ROLLOUTS):
            with group.session(seed=seed) as session:
                observations += [session.run(code) for _ in range(_N_CALLS)]
    time.sleep(_SECONDS_TO_END)
    return Batch(len(observations), lambda: require_right(observations, expected))


def _fresh_call(photo: Path, expected: bytes) -> Batch:
    run_fresh("PIL", photo, expected)
    return Batch(1, lambda: None)
