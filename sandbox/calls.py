"""Calls of a pool: their results, the slots that admit them, their numbers for the operator and Prometheus."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from PIL import Image

Status = Literal["ok", "error", "blocked", "timeout", "memory", "killed", "protocol"]
STATUSES: frozenset[str] = frozenset(get_args(Status))


@dataclass(frozen=True)
class ShownImage:
    """An image that the code saved or showed."""

    pixels: Image.Image
    """Mode RGB; transparency is laid on white."""
    name: str
    """File name relative to the working folder, or `figure 1`, `display 1`."""


@dataclass(frozen=True)
class Edit:
    """One rewrite that the sandbox made to the code before running it."""

    kind: str
    """Such as `strip_fence`; docs/sandbox_code.md has them all."""
    before: str
    after: str


@dataclass(frozen=True)
class Artefact:
    """A file that the call made or changed, shown or not."""

    name: str
    n_bytes: int
    note: str
    """Why an image file is not among the images; empty where there is nothing to say."""


@dataclass(frozen=True)
class Observation:
    """The outcome of one call. `ok`, `error`, `blocked` (refused before running), `timeout` and `memory` leave the
    session usable, unless it is `broken`. `killed`: its process is gone. `protocol`: what it sent is no reply."""

    status: Status
    text: str = ""
    """Standard output and error, in order, cut in the middle; protocol tags in it are neutralised."""
    images: tuple[ShownImage, ...] = ()
    error: str | None = None
    """`Type: message (line N: the line)`"""
    seconds: float = 0.0
    """By the wall clock, without the wait for a slot."""
    edits: tuple[Edit, ...] = ()
    artefacts: tuple[Artefact, ...] = ()
    broken: bool = False
    """The session is gone with its state: its rollout cannot go on (PyVision-RL §3.3 leaves such rollouts out)."""
    n_over_limit: int = 0
    """Images that are not shown because there are too many, or because they are too large."""

    @property
    def ok(self) -> bool:
        return self.status == "ok"


_RECENT = 4096


@dataclass(frozen=True)
class Spread:
    """Seconds: all of them counted and summed, the quantiles over the last 4,096."""

    n: int
    total: float
    p50: float
    p99: float
    longest: float


@dataclass(frozen=True)
class PoolStats:
    """A snapshot; counters run from the start of the pool."""

    calls: int
    statuses: dict[str, int]
    """Observations by status."""
    broken: int
    """Sessions that ended before they were closed: killed, crashed, or lost with their tree."""
    running: int
    """Calls that run now."""
    waiting: int
    """Calls that wait for one of the pool's slots."""
    call_seconds: Spread
    queue_seconds: Spread
    """Waiting for a slot."""
    spawn_seconds: Spread
    """Making a session, in the background or not."""
    sessions_started: int
    sessions: int
    """Alive, spares included."""
    spares: int
    """Started ahead and not yet asked for."""
    groups: int
    trees_started: int
    """More than one: the zygote crashed and was replaced."""
    processes: int
    memory_mb: float | None
    """Proportional set size of the whole tree; None where /proc does not tell, as it does only to root."""


class _Seconds:
    def __init__(self) -> None:
        self._n, self._total, self._recent = 0, 0.0, deque[float](maxlen=_RECENT)

    def add(self, seconds: float) -> None:
        self._n += 1
        self._total += seconds
        self._recent.append(seconds)

    def spread(self) -> Spread:
        ordered = sorted(self._recent) or [0.0]
        p50, p99 = (ordered[min(int(share * len(ordered)), len(ordered) - 1)] for share in (0.5, 0.99))
        return Spread(self._n, self._total, p50, p99, ordered[-1])


class Meter:
    """Counts; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards every number below: calls end in many threads
        self._statuses: Counter[str] = Counter()
        self._counts = dict.fromkeys(("broken", "running", "waiting", "trees_started"), 0)
        self._seconds = {name: _Seconds() for name in ("call_seconds", "queue_seconds", "spawn_seconds")}

    def count(self, name: Literal["broken", "running", "waiting", "trees_started"], change: int = 1) -> None:
        with self._lock:
            self._counts[name] += change

    @contextmanager
    def counting(self, name: Literal["running", "waiting"]) -> Iterator[None]:
        self.count(name)
        try:
            yield
        finally:
            self.count(name, -1)

    def took(self, name: Literal["queue_seconds", "spawn_seconds"], seconds: float) -> None:
        with self._lock:
            self._seconds[name].add(seconds)

    def ended(self, observation: Observation) -> None:
        with self._lock:
            self._statuses[observation.status] += 1
            self._seconds["call_seconds"].add(observation.seconds)

    def snapshot(self, *, pids: Sequence[int], **alive: int) -> PoolStats:
        """``alive``: ``sessions``, ``spares`` and ``groups``."""
        memory = proportional_mb(pids)
        with self._lock:
            counted: dict[str, Any] = {**self._counts, **alive}
            counted |= {name: seconds.spread() for name, seconds in self._seconds.items()}
            return PoolStats(
                calls=self._statuses.total(),
                statuses=dict(self._statuses),
                sessions_started=counted["spawn_seconds"].n,
                processes=len(pids),
                memory_mb=memory,
                **counted,
            )


def processes_below(pid: int) -> list[int]:
    """The process and all its descendants."""
    pids = [pid]
    for parent in pids:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):  # it ended while we looked
                pids += [int(child) for child in children.read_text().split()]
    return pids


def proportional_mb(pids: Sequence[int]) -> float | None:
    """Sum of the proportional set sizes in MiB, about a millisecond each; None where the kernel refuses to tell."""
    total = 0
    for pid in pids:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except PermissionError:
            return None
        except OSError:
            continue  # it ended while we looked
        total += next((int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")), 0)
    return total / 1024


class Slots:
    """One per call that computes: more at a time than CPUs would only slow one another down. One that sleeps lends its
    slot, and takes one back without waiting for it."""

    def __init__(self, n_slots: int) -> None:
        self._n_free = n_slots  # below zero where sleepers have woken up: later calls wait until it is made good
        self._changed = threading.Condition()  # guards _n_free: calls begin and end in many threads

    def wait(self, is_over: Callable[[], bool]) -> "Turn":
        """A turn with a slot, or without one as soon as `is_over` says that the call has become pointless."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_free > 0 or is_over())
            if is_over():
                self._changed.notify()  # the slot that woke us is for another
                return Turn(self, False)
            self._n_free -= 1
            return Turn(self, True)

    def change(self, n_free: int) -> None:
        with self._changed:
            self._n_free += n_free
            if self._n_free > 0:
                self._changed.notify()

    def wake(self) -> None:
        """Let every call that waits look whether it is over."""
        with self._changed:
            self._changed.notify_all()


class Turn:
    """One call's, from its admission to its end, which is noted as well."""

    def __init__(self, slots: Slots, computes: bool) -> None:
        self._slots, self._computes = slots, computes

    def note(self, computes: bool) -> None:
        if computes is not self._computes:
            self._computes = computes
            self._slots.change(-1 if computes else 1)
