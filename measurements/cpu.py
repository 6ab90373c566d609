"""CPU time of this process and of all that it starts, the dead included.

`getrusage` will not do: the sandbox's processes let the kernel reap their children, and a process without a
waiting parent is added to no parent's children. Four counters that see them, best first; the first that works is taken:

- cgroup v1 (cpuacct.usage) and v2 (cpu.stat): exact; need a cgroup that this user may write.
- perf: an inherited task clock (perf_event_open); exact; any user where kernel.perf_event_paranoid is 2 or less.
- proc: looks at /proc; what a process uses between the last look at it and its end is missing: a lower bound.
"""

import ctypes
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from darkroom.sandbox.calls import processes_below

_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_PERF_TYPE_SOFTWARE, _PERF_TASK_CLOCK, _PERF_ATTRIBUTE_BYTES = 1, 1, 112
_PERF_INHERIT, _PERF_NO_KERNEL, _PERF_NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6


class CpuClock(NamedTuple):
    """Call it for the milliseconds used so far."""

    name: str
    milliseconds: Callable[[], float]

    def __call__(self) -> float:
        return self.milliseconds()


@contextmanager
def cpu_clock(name: str | None = None) -> Iterator[CpuClock]:
    """Open before anything is started that is to be counted."""
    for candidate, open_clock in _CLOCKS.items():
        if name not in (None, candidate):
            continue
        with suppress(OSError), open_clock() as milliseconds:
            yield CpuClock(candidate, milliseconds)
            return
    raise SystemExit(f"CPU time cannot be measured here by {name or 'any counter'}")


@contextmanager
def busy_machine(n_processes: int) -> Iterator[None]:
    """So many processes that compute and nothing else. Open before the clock, which is not to count them."""
    with ExitStack() as stack:
        for _ in range(n_processes):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


@contextmanager
def _cgroup_v1() -> Iterator[Callable[[], float]]:
    with _own_cgroup("cpuacct", "/sys/fs/cgroup/cpuacct") as folder:
        yield lambda: int((folder / "cpuacct.usage").read_text()) / 1e6


@contextmanager
def _cgroup_v2() -> Iterator[Callable[[], float]]:
    root = "/sys/fs/cgroup/unified" if os.path.exists("/sys/fs/cgroup/unified/cgroup.procs") else "/sys/fs/cgroup"
    with _own_cgroup("", root) as folder:
        yield lambda: int((folder / "cpu.stat").read_text().split()[1]) / 1e3


@contextmanager
def _own_cgroup(controller: str, root: str) -> Iterator[Path]:
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    paths = [path for _, names, path in (line.split(":", 2) for line in lines) if controller in names.split(",")]
    if not paths:
        raise OSError(f"no cgroup for {controller}")
    parent = Path(root + paths[0])
    folder = parent / f"darkroom-benchmark-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / "cgroup.procs").write_text(str(os.getpid()))
        yield folder
    finally:
        with suppress(OSError):
            (parent / "cgroup.procs").write_text(str(os.getpid()))
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def _perf() -> Iterator[Callable[[], float]]:
    if platform.machine() not in _PERF_EVENT_OPEN:
        raise OSError("no number for perf_event_open")
    flags = _PERF_INHERIT | _PERF_NO_KERNEL | _PERF_NO_HYPERVISOR  # a software clock counts the kernel's part anyway
    head = struct.pack("IIQQQQQ", _PERF_TYPE_SOFTWARE, _PERF_ATTRIBUTE_BYTES, _PERF_TASK_CLOCK, 0, 0, 0, flags)
    attribute = head.ljust(_PERF_ATTRIBUTE_BYTES, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(_PERF_EVENT_OPEN[platform.machine()], attribute, 0, -1, -1, 8)  # 8: close on exec
    if fd < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    try:
        yield lambda: struct.unpack("Q", os.read(fd, 8))[0] / 1e6
    finally:
        os.close(fd)


@contextmanager
def _proc() -> Iterator[Callable[[], float]]:
    last_seen: dict[tuple[int, str], float] = {}

    def look() -> float:
        for pid in processes_below(os.getpid()):
            with suppress(OSError):
                born = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
                threads = Path(f"/proc/{pid}/task").iterdir()
                ticks = sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)
                last_seen[pid, born] = ticks / 1e6
        return sum(last_seen.values())

    yield look


_CLOCKS = {"cgroup v1": _cgroup_v1, "cgroup v2": _cgroup_v2, "perf": _perf, "proc": _proc}
CLOCK_NAMES = tuple(_CLOCKS)
