"""Processes that outlive their starter: started in a session and stopped as one; ports. Numbers are reused; with
the boot id and the start time (clock ticks since boot, from ``/proc/<pid>/stat``) one identifies a process for good."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

from darkroom.pipelines.storage.process_identity import boot_id, stat_of
from darkroom.sandbox.errors import UserError

GATE = 'read -r _ && exec "$@" </dev/null'
"""Wait for a line before the command; without one, end (see ``PausedProcess``)."""
LEASH = """exec 3<&0
(read -r _ <&3; trap "" TERM; kill -TERM 0; sleep 20; kill -KILL 0) &
exec 3<&-
exec "$@" </dev/null"""
"""Run the command until the starter's end of the pipe closes (see ``LeashedProcess``)."""

TAIL_BYTES, TAIL_LINES = 16_384, 15


class ProcessError(UserError):
    """A program cannot be installed, started or reached: the reason and what to do."""


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """One process on one machine, distinct from any later one; ``pid`` is also its session's number."""

    host: str
    boot: str
    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> Self:
        """The mark of a process that was just started. Raises ``ProcessLookupError``."""
        if (stat := stat_of(pid)) is None:
            raise ProcessLookupError(f"process {pid} has ended")
        return cls(socket.gethostname(), boot_id(), pid, stat.start_ticks)

    @property
    def is_local(self) -> bool:
        """True if it was started on this machine; elsewhere its state is unknown."""
        return self.host == socket.gethostname()

    @property
    def is_running(self) -> bool:
        """True if it still runs; a zombie does not."""
        _reap(self.pid)
        stat = stat_of(self.pid)
        return self._is_this_boot and stat is not None and stat.start_ticks == self.start_ticks

    def members(self) -> list[int]:
        """Every running process of its session, itself included: workers may outlive their leader."""
        own = stat_of(self.pid)
        is_reused = own is not None and own.start_ticks != self.start_ticks
        if not self._is_this_boot or is_reused:
            return []
        stats = {int(entry.name): stat_of(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
        return [
            pid
            for pid, stat in stats.items()
            if stat is not None and stat.session == self.pid and stat.start_ticks >= self.start_ticks
        ]

    @property
    def _is_this_boot(self) -> bool:
        return self.is_local and self.boot == boot_id()


class PausedProcess:
    """A process that waits for ``release``, so that its starter can record it; it ends if the starter does."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], log: Path) -> None:
        self.mark, self._pipe = _spawn(GATE, command, environment, log)

    def release(self) -> None:
        os.write(self._pipe, b"\n")
        os.close(self._pipe)

    def drop(self) -> None:
        """End the process without starting its command."""
        os.close(self._pipe)


class LeashedProcess:
    """A process that ends with its starter and all that it started: a shell waits for the end of a pipe."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], log: Path) -> None:
        self.mark, self._pipe = _spawn(LEASH, command, environment, log)

    def stop(self, *, grace_seconds: float) -> None:
        """End it: SIGTERM to every process of its session, SIGKILL after ``grace_seconds``."""
        stop_session(self.mark, grace_seconds=grace_seconds)
        os.close(self._pipe)


def _spawn(script: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> tuple[ProcessMark, int]:
    """Start the shell script on the command in a new session; the descriptor is the other end of its standard input."""
    log.parent.mkdir(parents=True, exist_ok=True)
    stdin, pipe = os.pipe()
    try:
        pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", script, "sh", *command],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, stdin, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            # background jobs ignore SIGINT, Dagster's also SIGTERM, and a child would inherit both
            setsigdef=(signal.SIGINT, signal.SIGTERM),
        )
    finally:
        os.close(stdin)
    return ProcessMark.of(pid), pipe


def stop_session(mark: ProcessMark, *, grace_seconds: float) -> None:
    """End every process of the session: SIGTERM, and SIGKILL for what is left after ``grace_seconds``."""
    for signal_number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 10.0)):
        if _ends_within(mark, seconds, signal_number):
            return
    raise TimeoutError(f"processes {mark.members()} outlived SIGKILL for ten seconds, blocked in a device or disk call")


@contextmanager
def signals_handled(handler: Callable[[int, FrameType | None], Any], *numbers: int) -> Iterator[None]:
    """Let ``handler`` have the signals of this process, for a while."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def last_lines(path: Path) -> list[str]:
    """The last lines of a log, without empty ones."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        text = file.read().decode(errors="replace")
    lines = (line.rstrip() for line in text.replace("\r", "\n").split("\n"))  # progress bars return without a newline
    return [line for line in lines if line][-TAIL_LINES:]


def _ends_within(mark: ProcessMark, seconds: float, signal_number: int) -> bool:
    """True if the session ends in time. Each process gets the signal once, also one that is forked meanwhile."""
    deadline, signalled = time.monotonic() + seconds, set[int]()
    while members := mark.members():
        for pid in members:
            if pid not in signalled:
                signalled.add(pid)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal_number)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
        _reap(mark.pid)
    return True


def _reap(pid: int) -> None:
    """Collects the exit status of a child, so that it is no zombie; other processes have none to collect."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses to listen on, and the one to connect to instead."""


def url_of(host: str, port: int) -> str:
    """The URL on this machine of a server that listens on ``host``."""
    address = WILDCARDS.get(host, host)
    return f"http://{f'[{address}]' if ':' in address else address}:{port}"


def free_port(host: str, port: int | None = None) -> int:
    """``port`` if it can be opened, or a free one. Raises ``ProcessError``."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a connection in TIME_WAIT does not matter
        try:
            probe.bind((host, port or 0))
        except OSError as error:
            why = f"cannot listen on {host} port {port or 0} ({error.strerror})"
            raise ProcessError(f"{why}; omit --port for a free one") from error
        return int(probe.getsockname()[1])
