"""A job's directory, through which it and its starter communicate, and the supervisor that ends its processes.

    python -m darkroom.train.runs.supervisor PARENT COMMAND...

PARENT is the process id of the starter. The command gets a process group of its own. On SIGTERM or SIGINT, or when the
parent has ended (by SIGKILL, too), the command receives SIGTERM, and SIGKILL with its whole group after
``GRACE_SECONDS``. Sandboxes, which leave the group, end with the program that opened them. The exit status is the
command's; 128 and the signal's number where a signal ended it.

A job directory (``DARKROOM_EXCHANGE``) lies on this machine or a shared file system:

messages   Dagster Pipes: one JSON object a line, from the program's first process
error      the error message of a program that failed (``JobDirectory.error`` has the file's name)
alive      a number that grows while the program lives
stop       created by the starter: the program must end, also when it starts later
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

VARIABLE = "DARKROOM_EXCHANGE"
SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""For programs that are started with `-m`: a folder `train` in the working directory is not taken for ours."""
SECONDS = 2.0
"""Between two heartbeats, and between two checks for ``stop``."""


class JobDirectory:
    """The files of one folder, as above."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.messages, self.alive, self.stop = (folder / name for name in ("messages", "alive", "stop"))
        self.error = folder / "fault"

    @classmethod
    def of_this_program(cls) -> JobDirectory | None:
        """The folder that the environment names."""
        folder = os.environ.get(VARIABLE)
        return cls(Path(folder)) if folder else None

    def last_words(self) -> str:
        """The error message of a failed program; empty without one."""
        return self.error.read_text().strip() if self.error.is_file() else ""


@contextmanager
def attend(exchange: JobDirectory, *, first: bool) -> Iterator[None]:
    """Inside it a thread writes heartbeats (in the ``first`` process) and ends this process once ``stop`` exists.

    Where ``stop`` exists already, the job ends here, before it has written anything.
    """
    if exchange.stop.exists():
        signal.raise_signal(signal.SIGTERM)
    if first:  # here: the program may end before its thread has run
        exchange.alive.write_text("0")
    over = threading.Event()
    threading.Thread(target=_attend, args=(exchange, first, over), daemon=True, name="exchange").start()
    try:
        yield
    finally:
        over.set()


def _attend(exchange: JobDirectory, first: bool, over: threading.Event) -> None:
    n_signs = 0
    while not exchange.stop.exists():
        n_signs += 1
        if first:
            exchange.alive.write_text(str(n_signs))
        if over.wait(SECONDS):
            return
    os.kill(os.getpid(), signal.SIGTERM)


GRACE_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


def die_with_parent(signal_number: int) -> None:
    """Sends this process the signal when the thread that started it ends."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


GONE = 128 + signal.SIGTERM
"""Exit status of a program whose starter ended before it could start."""


def supervise(parent: int, command: Sequence[str]) -> int:
    """Runs ``command`` and returns its exit status."""
    signalled = termination_signals()
    try:
        gone = os.pidfd_open(parent)
    except ProcessLookupError:
        return GONE
    if os.getppid() != parent:  # the number is another process's now
        return GONE
    process = subprocess.Popen(command, start_new_session=True, preexec_fn=partial(die_with_parent, signal.SIGKILL))
    return supervise_process(process.pid, signalled, gone)


def supervise_process(pid: int, signalled: int, gone: int) -> int:
    """Waits for a child, the leader of its group, and ends it once ``signalled`` or ``gone`` is readable.

    Returns its exit status.
    """
    ended = os.pidfd_open(pid)
    if _first_of(signalled, gone, ended) != ended:
        os.kill(pid, signal.SIGTERM)
        _first_of(ended, seconds=GRACE_SECONDS)
    with suppress(ProcessLookupError):  # before its leader is waited for: until then the number is not reused
        os.killpg(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if status >= 0 else 128 - status


def termination_signals() -> int:
    """A file descriptor that becomes readable when SIGTERM or SIGINT arrives."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return read


def new_session() -> None:
    """In a fork of a supervisor: a session of its own, and Python's own answers to signals."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _first_of(*descriptors: int, seconds: float | None = None) -> int | None:
    """The first readable descriptor; None on timeout."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    ready = poll.poll(None if seconds is None else seconds * 1000)
    return ready[0][0] if ready else None


if __name__ == "__main__":
    sys.exit(supervise(int(sys.argv[1]), sys.argv[2:]))
