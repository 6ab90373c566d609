"""Limits of one session, and the clock that charges a call: its own work and waiting, never a wait for a busy CPU.

A busy machine must not turn into timeouts: they would end up as labels in a data set. So the limit counts the CPU time
of the process, or the wall clock less the main thread's time in the run queue (/proc/PID/schedstat), whichever is more.

The kernel adds a wait to that account when it is over: where a process looks late but is ready to run, the verdict
waits until it has run. While a main thread waits for another thread, which waits for a CPU, CPU time alone counts.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

EchoMode = Literal["last", "off"]
"""last: a call shows the value of its last expression, and figures that it left unshown, as a notebook does."""
_WALL_CEILING = 10.0
_DECODE_SECONDS = 30.0
"""Charged per image, of which the largest take one or two; a call's `seconds` are meant for the code."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one session; a mebibyte is 2**20 bytes."""

    seconds: float = 10.0
    """What one call may be charged (Thyme allows ten): the CPU time of its threads, or the wall clock less its waiting
    for a CPU, whichever is more (`ProcessClock`). Then the code is interrupted, and the session keeps its state."""
    grace: float = 1.0
    """Charged after the interruption to code that swallows it; then the session is killed."""
    wall_seconds: float | None = None
    """Ceiling of a call by the wall clock. None: ten times `seconds`. A call that reaches it for want of a CPU is no
    verdict on the code: its session is `lost`."""
    memory_mb: int = 1024
    """Address space beyond what the warm libraries already hold."""
    disk_mb: int = 64
    files: int = 512
    file_mb: int = 32
    """Largest single file."""
    output_chars: int = 16_384
    """Characters of output that an observation keeps: three quarters from the head, the rest from the tail."""
    max_images: int = 8
    max_pixels: int = 50_000_000
    """Largest image, in pixels: of the input, of the code's own and of an observation."""
    input_mb: int = 512
    """Files of a group's images and videos together; in the sandbox they are in memory."""
    input_pixels: int = 200_000_000
    """Pixels of a group's images together, decoded for all of its sessions: seven to ten bytes of memory each."""
    reply_mb: int = 96
    """Raw pixels that one observation may carry, three bytes each."""

    def __post_init__(self) -> None:
        for name in ("seconds", "grace", "wall_seconds"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, float(value))  # 10 and 10.0 are one limit, and have one digest
        for name, value in vars(self).items():
            if value is not None and value <= 0:
                raise ValueError(f"Limits.{name} must be positive, found {value}")
        if self.wall_seconds is not None and self.wall_seconds < self.seconds:
            raise ValueError(f"Limits.wall_seconds is {self.wall_seconds}, below seconds ({self.seconds})")

    @property
    def wall_ceiling(self) -> float:
        """Most seconds by the wall clock per second charged."""
        return _WALL_CEILING if self.wall_seconds is None else self.wall_seconds / self.seconds

    def for_decoding(self, n_images: int) -> "Limits":
        """Limits for decoding a group's images, in `seconds`."""
        return Limits(seconds=max(self.seconds, _DECODE_SECONDS) * max(n_images, 1))

    @property
    def most_wall_seconds(self) -> float:
        """Seconds after which a call is given up, grace included."""
        return (self.seconds + self.grace) * self.wall_ceiling


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
            stats = (Path(f"{tasks}/{thread}/stat").read_bytes() for thread in os.listdir(tasks))
            return any(stat.rpartition(b")")[2].split()[0] == b"R" for stat in stats)
        return False

    def _account(self) -> tuple[int, int, int]:
        with suppress(OSError, ValueError):  # it has ended, or the kernel keeps no account
            ran, waited, n_runs = map(int, os.pread(self._run_queue, 128, 0).split())
            return ran, waited, n_runs
        return 0, 0, 0


def _open_run_queue(pid: int) -> int:
    """Open the account. Raises OSError where no descriptor is left: a call must not be charged for that."""
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended, or the kernel keeps none
        return os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    return -1


class Starved(TimeoutError):
    """The wall clock reached its ceiling while the call had time left: the machine is to blame, not the code."""


class Deadline:
    """When to interrupt a call, which starts now, and when to give it up. Called for the seconds to the next look.
    `interrupt` is called at its end; `note` hears at each look whether the call computes, or sleeps."""

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
        """Seconds to the next look. Raises TimeoutError when the grace is over, too, and Starved."""
        rest = self._rest()
        if rest <= 0 and not self._interrupted:
            self._interrupted, self._phase = True, self._limits.grace
            self._phase_wall = time.monotonic() - self._started
            self._phase_charged = self._charged(self._phase_wall)
            self._interrupt()
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


def wall_deadline(seconds: float) -> Callable[[], float]:
    """The same for what is not charged: so long by the wall clock, and no longer."""
    end = time.monotonic() + seconds

    def rest() -> float:
        if (seconds_left := end - time.monotonic()) <= 0:
            raise TimeoutError
        return seconds_left

    return rest
