"""Memory of a session, and many sessions at a time: nothing is lost, nothing is mixed up, nothing grows."""

import gc
import os
import resource
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from darkroom.sandbox import SandboxPool, Session
from darkroom.sandbox.calls import processes_below
from measurements.cpu import CpuClock
from measurements.rows import Bar, Row, count_row, median_row
from measurements.task import code_of, reference, require_ok

N_ROLLOUTS = 8
_N_IDLE = 100
_N_FILES_PER_SESSION = 3
_SECONDS_TO_END = 1.0
# of the host: what its allocator keeps after so many replies is not a leak
_GROWTH_MB = 64


def measure_idle_memory(clock: CpuClock, photo: Path, *, quick: bool) -> list[Row]:
    """100 siblings after one empty call each, then after one crop. PSS divides a shared page among its users."""
    with SandboxPool() as pool, pool.group([photo]) as group, ExitStack() as stack:
        before = set(processes_below(pool.pid))
        free = available_mb()
        sessions = [stack.enter_context(group.session(seed=seed)) for seed in range(_N_IDLE)]
        require_ok([session.run("pass") for session in sessions])
        idle = _memory_of(set(processes_below(pool.pid)) - before, free)
        require_ok([session.run(code_of("PIL")) for session in sessions])
        used = _memory_of(set(processes_below(pool.pid)) - before, free)
    return [
        median_row("idle session, memory", idle.megabytes, "MB", Bar("at most", 6), idle.note),
        median_row("session after a PIL call, memory", used.megabytes, "MB", None, used.note),
    ]


def measure_fleet(clock: CpuClock, photo: Path, *, quick: bool) -> list[Row]:
    """1,000 sessions alive at a time (groups of 8), 10,000 calls on them; each session counts its own calls."""
    n_sessions, n_rounds = (80, 4) if quick else (1_000, 10)
    _allow_descriptors(4 * n_sessions)
    with SandboxPool() as pool:
        _run_fleet(pool, photo, min(n_sessions, 80), 1)  # what is made once is not growth
        before = _Footprint.of(pool.pid)
        outcome, most = _run_fleet(pool, photo, n_sessions, n_rounds)
        growth = _Footprint.of(pool.pid).growth_since(before)
    name = f"{n_sessions:,} sessions, {n_sessions * n_rounds:,} calls"
    return [
        count_row(f"{name}: lost", outcome["lost"], "", Bar("at most", 0), str(dict(outcome))),
        count_row(f"{name}: wrong answers", outcome["wrong"], "", Bar("at most", 0)),
        count_row(f"{name}: memory at the end", most, "GiB", Bar("at most", 24)),
        count_row(f"{name}: processes left", growth.n_processes, "", Bar("at most", 0)),
        count_row(f"{name}: descriptors left", growth.n_descriptors, "", Bar("at most", 0)),
        count_row(f"{name}: memory of the tree left", growth.tree_mb, "MB", Bar("at most", _GROWTH_MB)),
        count_row(f"{name}: memory of the host left", growth.host_mb, "MB", Bar("at most", _GROWTH_MB)),
    ]


def _run_fleet(pool: SandboxPool, photo: Path, n_sessions: int, n_rounds: int) -> tuple[Counter[str], float]:
    """Outcomes of all calls, and the gigabytes in use while all sessions are alive."""
    expected, outcome = reference("PIL", photo), Counter[str](lost=0, wrong=0)
    code = code_of("PIL").replace("random.randint(1000, 1007)", f"random.randint(1, {_N_FILES_PER_SESSION})")
    free = available_mb()
    with ExitStack() as stack, ThreadPoolExecutor(os.cpu_count()) as threads:
        groups = [stack.enter_context(pool.group([photo])) for _ in range(n_sessions // N_ROLLOUTS)]
        sessions = [stack.enter_context(group.session()) for group in groups for _ in range(N_ROLLOUTS)]
        for number, session in enumerate(sessions):
            require_ok([session.run(f"mine, n_calls = {number}, 0")])
        for n_calls in range(1, n_rounds + 1):
            call = partial(_outcome, code=code, n_calls=n_calls, expected=expected)
            outcome.update(threads.map(call, range(n_sessions), sessions))
        most = (free - available_mb()) / 1024
    time.sleep(_SECONDS_TO_END)
    return outcome, most


def _outcome(number: int, session: Session, code: str, n_calls: int, expected: bytes) -> str:
    observation = session.run(f"n_calls += 1\n{code}print(mine, n_calls)")
    if not observation.ok or not session.alive:
        return "lost"
    right = observation.text.splitlines()[-1:] == [f"{number} {n_calls}"]
    return "right" if right and [image.pixels.tobytes() for image in observation.images] == [expected] else "wrong"


class _Footprint(NamedTuple):
    n_processes: int
    n_descriptors: int
    tree_mb: float
    host_mb: float

    @classmethod
    def of(cls, pool_pid: int) -> "_Footprint":
        gc.collect()
        pids = processes_below(pool_pid)
        tree = sum(_resident_mb(pid) for pid in pids)
        return cls(len(pids), len(os.listdir("/proc/self/fd")), tree, _resident_mb(os.getpid()))

    def growth_since(self, before: "_Footprint") -> "_Footprint":
        return _Footprint._make(now - then for now, then in zip(self, before, strict=True))


class _Memory(NamedTuple):
    megabytes: list[float]
    note: str


def _memory_of(pids: set[int], free_before: float) -> _Memory:
    per_session = (free_before - available_mb()) / len(pids)
    try:
        smaps = [_smaps_mb(pid) for pid in pids]
    except PermissionError:  # only root may look into a process that forbids dumps
        return _Memory([per_session], "what the machine has less, per session")
    private = statistics.median(one["Private_Dirty"] for one in smaps)
    note = f"PSS; {private:.1f} MB private; the machine has {per_session:.1f} MB less per session"
    return _Memory([one["Pss"] for one in smaps], note)


def _smaps_mb(pid: int) -> dict[str, float]:
    rows = [line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]]
    return {row[0].rstrip(":"): int(row[1]) / 1024 for row in rows}


def _resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def available_mb() -> float:
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return next(int(fields[1]) / 1024 for fields in lines if fields[0] == "MemAvailable:")


def _allow_descriptors(n_descriptors: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < n_descriptors:
        raise SystemExit(f"this run needs {n_descriptors} open files, the hard limit is {hard}: raise `ulimit -Hn`")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, n_descriptors), hard))
