"""Processes that outlive their starter: started in their own session, identified by start time, stopped as a session.

Process numbers are reused. With the boot id and the start time (clock ticks since boot, from ``/proc/<pid>/stat``) a
number identifies one process for good. Their programs come from virtual environments below ``<home>/environments``,
because their pins conflict with ours.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from darkroom.pipelines.storage.leases import boot_id, stat_of
from darkroom.sandbox.errors import UserError

GATE = 'read -r _ && exec "$@" </dev/null'
"""Runs before the command: waits for a line, and ends without one (see ``PausedProcess``)."""


class ServingError(UserError):
    """A server cannot be started, or did not stay up: the reason and what to do."""


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
        stat = stat_of(pid)
        if stat is None:
            raise ProcessLookupError(f"process {pid} has ended")
        return cls(socket.gethostname(), boot_id(), pid, stat.start_ticks)

    @property
    def is_local(self) -> bool:
        """Whether it was started on this machine; elsewhere its state is unknown."""
        return self.host == socket.gethostname()

    @property
    def is_running(self) -> bool:
        """Whether it still runs; a zombie does not."""
        _reap(self.pid)
        stat = stat_of(self.pid)
        return self._is_this_boot and stat is not None and stat.start_ticks == self.start_ticks

    def members(self) -> list[int]:
        """Every running process of its session, itself included: workers may outlive their leader."""
        if not self._is_this_boot or self._number_is_reused:
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

    @property
    def _number_is_reused(self) -> bool:
        stat = stat_of(self.pid)
        return stat is not None and stat.start_ticks != self.start_ticks


class PausedProcess:
    """A process that waits for ``release`` before it executes its command; it ends if this process dies before.

    In between, the starter records the process: a ``kill -9`` at any moment leaves no unrecorded server.
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
                # background jobs ignore SIGINT, Dagster's also SIGTERM, and a child would inherit both
                setsigdef=(signal.SIGINT, signal.SIGTERM),
            )
        finally:
            os.close(gate)
        self.mark = ProcessMark.of(pid)

    def release(self) -> None:
        """Starts the command."""
        os.write(self._opener, b"\n")
        os.close(self._opener)

    def drop(self) -> None:
        """Ends the process without starting its command."""
        os.close(self._opener)


def stop_session(mark: ProcessMark, *, grace_seconds: float) -> None:
    """Ends every process of the session: SIGTERM, and SIGKILL for what is left after ``grace_seconds``."""
    for signal_number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 10.0)):
        for pid in mark.members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal_number)
        if _ends_within(mark, seconds):
            return
    raise TimeoutError(f"processes {mark.members()} outlived SIGKILL for ten seconds, blocked in a device or disk call")


def _ends_within(mark: ProcessMark, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while mark.members():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
        _reap(mark.pid)
    return True


def _reap(pid: int) -> None:
    """Collects the exit status of a child, so that it is no zombie; other processes have none to collect."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


MARKER = "darkroom-installed"
OURS = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")


@dataclass(frozen=True, slots=True)
class VirtualEnvironment:
    """A folder with Python and ``requirements`` (the program's own first).

    A marker is written last, so that a killed installation starts again.
    """

    folder: Path
    requirements: tuple[str, ...]
    program_name: str
    size: str
    """Size of the download, for the progress message."""
    interpreter: tuple[str, ...] = ("--python", sys.executable)
    """Arguments of ``uv venv``."""
    is_complete: bool = False
    """Whether ``requirements`` name every package; else uv adds what they require."""

    @property
    def program(self) -> Path:
        """The executable it is made for."""
        return self.folder / "bin" / self.program_name

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.folder / "bin" / "python")

    @property
    def is_installed(self) -> bool:
        """Whether exactly ``requirements`` are in it."""
        marker = self.folder / MARKER
        return marker.is_file() and marker.read_text() == " ".join(self.requirements) and self.program.exists()

    def ensure(self, *, log: Path | None = None) -> None:
        """Installs the requirements unless they are there. Raises ``ServingError``.

        uv's output goes to ``log``, or to stderr as its progress.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self.folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_installed:
                self._install(log)

    def activate(self, environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` with this virtual environment active."""
        path = f"{self.folder / 'bin'}{os.pathsep}{environment.get('PATH', os.defpath)}"
        return {**_without_ours(environment), "VIRTUAL_ENV": str(self.folder), "PATH": path}

    def _install(self, log: Path | None) -> None:
        uv = _find_uv()
        if log is None:
            print(f"installing {self.requirements[0]} into {self.folder}: {self.size}, once", file=sys.stderr)
        else:
            log.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)  # uv clears only what is a whole environment
        self._run(uv, "venv", *self.interpreter, str(self.folder), log=log)
        self._fill(uv, log)
        (self.folder / MARKER).write_text(" ".join(self.requirements))

    def _fill(self, uv: str, log: Path | None) -> None:
        alone = ("--no-deps",) if self.is_complete else ()
        self._run(uv, "pip", "install", "--python", self.python, *alone, *self.requirements, log=log)

    def _run(self, *command: str, log: Path | None) -> None:
        # 2: stdout is for `eval`, uv's progress is not
        with nullcontext(2) if log is None else log.open("a") as output:
            done = subprocess.run(
                command,
                env=_without_ours(os.environ),
                stdout=output,
                stderr=subprocess.STDOUT if log else None,
                check=False,
            )
        if done.returncode:
            tool, where = " ".join(command[:3]), "above" if log is None else str(log)
            raise ServingError(
                f"could not install {self.requirements[0]} into {self.folder}: `{tool} …` failed, see {where}."
                " The next start tries again; what was downloaded is kept in uv's cache"
            )


def _without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in OURS}


def _find_uv() -> str:
    beside = str(Path(sys.executable).parent)
    uv = shutil.which("uv", path=f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    if uv is None:
        raise ServingError("a virtual environment is made with uv, which is not installed: pip install uv")
    return uv
