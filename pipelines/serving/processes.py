"""Processes that outlive their starter: started in a session of their own, known again by start time, stopped whole.

A process number alone says little: it is given to another process some time after the first is gone. With the boot
and the start time (clock ticks since boot, from ``/proc/<pid>/stat``) it names one process for good.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

GATE = 'read -r _ && exec "$@" </dev/null'
"""What runs before the program: it waits for a line, and ends without one (see ``Held``)."""


class Stat(NamedTuple):
    """What ``/proc/<pid>/stat`` says of a process that runs."""

    session: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """One process on one machine, never to be mistaken for a later one; ``pid`` is also its session's number."""

    host: str
    boot: str
    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> ProcessMark:
        """The mark of a process that was just started. Raises ``ProcessLookupError``."""
        stat = _stat(pid)
        if stat is None:
            raise ProcessLookupError(f"process {pid} has ended")
        return cls(socket.gethostname(), _boot(), pid, stat.start_ticks)

    @property
    def is_local(self) -> bool:
        """Whether it was started on this machine: only there can be told whether it runs."""
        return self.host == socket.gethostname()

    @property
    def is_running(self) -> bool:
        """Whether this very process runs; a zombie does not."""
        _reap(self.pid)
        stat = _stat(self.pid)
        return self._is_this_boot and stat is not None and stat.start_ticks == self.start_ticks

    def members(self) -> list[int]:
        """Every running process of its session, itself included: a leader may be gone and its workers not."""
        if not self._is_this_boot or self._number_was_given_away:
            return []
        found = {int(entry.name): _stat(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
        return [
            pid
            for pid, stat in found.items()
            if stat is not None and stat.session == self.pid and stat.start_ticks >= self.start_ticks
        ]

    @property
    def _is_this_boot(self) -> bool:
        return self.is_local and self.boot == _boot()

    @property
    def _number_was_given_away(self) -> bool:
        stat = _stat(self.pid)
        return stat is not None and stat.start_ticks != self.start_ticks


class Held:
    """A process that waits at a gate: its program starts with ``release``, and never if this process dies before.

    In between, the starter writes down what it started: no moment of a ``kill -9`` leaves a server that nobody knows.
    """

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        gate, self._opener = os.pipe()
        try:
            pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", GATE, "sh", *command],
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, gate, 0),
                    (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
                # a job in the background ignores SIGINT, Dagster then SIGTERM too, and a child would inherit both
                setsigdef=(signal.SIGINT, signal.SIGTERM),
            )
        finally:
            os.close(gate)
        self.mark = ProcessMark.of(pid)

    def release(self) -> None:
        """Opens the gate."""
        os.write(self._opener, b"\n")
        os.close(self._opener)

    def drop(self) -> None:
        """Closes the gate for good: the process ends."""
        os.close(self._opener)


def stop_session(mark: ProcessMark, *, grace_seconds: float) -> None:
    """Ends every process of the session: SIGTERM, and SIGKILL for what is left after ``grace_seconds``."""
    for signal_number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 10.0)):
        for pid in mark.members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal_number)
        if _ends_within(mark, seconds):
            return
    raise TimeoutError(f"processes {mark.members()} outlived SIGKILL for ten seconds: they wait for a device or a disk")


def _ends_within(mark: ProcessMark, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while mark.members():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
        _reap(mark.pid)
    return True


def _reap(pid: int) -> None:
    """Takes the exit status of an own child, so that it is no zombie; of another's child there is none to take."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _stat(pid: int) -> Stat | None:
    """None for a process that is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold blanks and brackets
    return None if fields[0] in "ZX" else Stat(session=int(fields[3]), start_ticks=int(fields[19]))


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
