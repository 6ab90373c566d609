"""Time charged to a call: its own work and its own waiting, never the wait for a CPU that others keep busy.

A busy machine must not turn into timeouts: they would end up as labels in a data set. So the limit counts the CPU time
of the process, or the wall clock less the time that the kernel made it wait in the run queue (`sched_info` of
/proc/PID/schedstat, main thread), whichever is more. Code that sleeps is charged for sleeping.

The kernel adds a wait to that account when it is over. So where a process looks late but is ready to run, the verdict
waits until it has run: by then the wait is accounted. A process whose main thread waits for another thread, which waits
for a CPU, does not sleep: meanwhile CPU time alone counts.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress

from darkroom.sandbox.limits import Limits

_NANOSECONDS = 1e9
# threads together can use up their CPU time long before the wall clock says so
_LONGEST_LOOK, _SHORT_LOOK, _SHORTEST_LOOK = 0.1, 0.01, 0.002
# a call sleeps that was busy for less than this part of the time between two looks
_LEAST_NAP, _BUSY = 0.05, 0.1


class ProcessClock:
    """Reads the two clocks of one session's process. Where the kernel keeps no such account, the wall clock counts."""

    def __init__(self, pid: int, run_queue: int | None = None) -> None:
        """`run_queue`: its open schedstat, to be closed with the clock, for a caller that sees no /proc; -1: none."""
        self._pid = pid
        self._cpu_clock = ~pid << 3 | 2  # the clock id that clock_getcpuclockid(3) makes
        self._run_queue = _open_run_queue(pid) if run_queue is None else run_queue

    def close(self) -> None:
        if self._run_queue >= 0:
            os.close(self._run_queue)
            self._run_queue = -1

    def cpu_seconds(self) -> float:
        with suppress(OSError):  # the process has ended
            return time.clock_gettime(self._cpu_clock)
        return 0.0

    def waited_seconds(self) -> float:
        return self._account()[1] / _NANOSECONDS

    def has_run(self) -> tuple[int, int]:
        """Changes whenever the main thread runs: nanoseconds that it ran (as of the last tick), and how often."""
        ran, _, n_runs = self._account()
        return ran, n_runs

    def is_ready(self) -> bool:
        """Return whether a thread of it runs or waits for a CPU. False where /proc cannot be seen."""
        tasks = f"/proc/{self._pid}/task"
        with suppress(OSError, IndexError):
            return any(_state(f"{tasks}/{thread}/stat") == b"R" for thread in os.listdir(tasks))
        return False

    def _account(self) -> tuple[int, int, int]:
        with suppress(OSError, ValueError):  # it has ended, or the kernel keeps no account
            ran, waited, n_runs = map(int, os.pread(self._run_queue, 128, 0).split())
            return ran, waited, n_runs
        return 0, 0, 0


def _state(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read().rpartition(b")")[2].split()[0]


def _open_run_queue(pid: int) -> int:
    """Raises OSError where this process has no descriptor left: a call must not be charged for that."""
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended, or the kernel keeps none
        return os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    return -1


class Starved(TimeoutError):
    """The wall clock reached its ceiling while the call had time left: the machine is to blame, not the code."""


class Deadline:
    """When to interrupt a call, which starts now, and when to give it up. Called for the seconds to the next look.

    `interrupt` is called at its end; `note` hears at each look whether the call computes, or sleeps.
    """

    def __init__(
        self,
        process: ProcessClock,
        limits: Limits,
        interrupt: Callable[[], None] = lambda: None,
        note: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._process, self._limits, self._interrupt, self._note = process, limits, interrupt, note
        self._started = time.monotonic()
        self._cpu, self._waited = process.cpu_seconds(), process.waited_seconds()
        self._phase, self._phase_wall, self._phase_charged = limits.seconds, 0.0, 0.0
        self._looked = self._busy = 0.0
        self._settled, self._doubt = 0.0, (0.0, (-1, -1))
        self._interrupted = False

    def __call__(self) -> float:
        """Raises TimeoutError when the grace is over, too, and Starved."""
        rest = self._rest()
        if rest <= 0 and not self._interrupted:
            self._begin_grace()
            rest = self._rest()
        if rest <= 0:
            raise TimeoutError
        return min(max(rest, _SHORTEST_LOOK), _LONGEST_LOOK)

    def _rest(self) -> float:
        wall = time.monotonic() - self._started
        charged = self._charged(wall)
        if wall - self._phase_wall >= self._phase * self._limits.wall_ceiling:
            if not self._interrupted and charged < self._phase:
                raise Starved
            return 0.0
        rest = self._phase - (charged - self._phase_charged)
        return min(self._settled_rest(wall), _SHORT_LOOK) if rest <= 0 and self._process.is_ready() else rest

    def _settled_rest(self, wall: float) -> float:
        """Rest as of the last look after which it has run: no wait that began before it is missing."""
        ran = self._process.has_run()
        if ran != self._doubt[1]:
            self._settled, self._doubt = self._doubt[0], (wall, ran)
        return self._phase - (self._charged(self._settled) - self._phase_charged)

    def _charged(self, wall: float) -> float:
        """Seconds charged to `Limits.seconds` after so much time by the wall clock."""
        waited = max(self._process.waited_seconds() - self._waited, 0.0)
        computed = self._process.cpu_seconds() - self._cpu
        if (passed := wall - self._looked) >= _LEAST_NAP:
            self._note(computed + waited - self._busy >= _BUSY * passed)
            self._looked, self._busy = wall, computed + waited
        return max(wall - waited, computed)

    def _begin_grace(self) -> None:
        self._interrupted, self._phase = True, self._limits.grace
        self._phase_wall = time.monotonic() - self._started
        self._phase_charged = self._charged(self._phase_wall)
        self._interrupt()


def wall_deadline(seconds: float) -> Callable[[], float]:
    """The same for what is not charged: so long by the wall clock, and no longer."""
    end = time.monotonic() + seconds

    def rest() -> float:
        if (seconds_left := end - time.monotonic()) <= 0:
            raise TimeoutError
        return seconds_left

    return rest
