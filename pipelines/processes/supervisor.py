"""A job's directory, through which it and its starter communicate, and the supervisor that ends its processes.

    python -m darkroom.pipelines.processes.supervisor PARENT COMMAND...

PARENT is the process id of the starter. The command gets a process group of its own. On SIGTERM or SIGINT, or when the
parent has ended (by SIGKILL, too), the command receives SIGTERM, and SIGKILL with its whole group after
``GRACE_SECONDS``. Sandboxes, which leave the group, end with the program that opened them. The exit status is the
command's; 128 and the signal's number where a signal ended it.

A job directory (``DARKROOM_EXCHANGE``) holds

messages   Dagster Pipes: one JSON object a line, from the program's first process
error      the error message of a program that failed (``JobDirectory.error`` has the file's name)
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

VARIABLE = "DARKROOM_EXCHANGE"
SAFE_PATH = {"PYTHONSAFEPATH": "1"}
"""For programs that are started with `-m`: a folder `train` in the working directory is not taken for ours."""
GRACE_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1
_GONE = 128 + signal.SIGTERM
"""Exit status of a program whose starter ended before it could start."""


class JobDirectory:
    """The files of one folder, as above."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.messages, self.error = folder / "messages", folder / "fault"

    @classmethod
    def of_this_program(cls) -> JobDirectory | None:
        """The folder that the environment names."""
        folder = os.environ.get(VARIABLE)
        return cls(Path(folder)) if folder else None

    def last_words(self) -> str:
        """The error message of a failed program; empty without one."""
        return self.error.read_text().strip() if self.error.is_file() else ""


def die_with_parent(signal_number: int) -> None:
    """Send this process the signal when the thread that started it ends."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def supervise(parent: int, command: Sequence[str]) -> int:
    """Run ``command``, end it once a signal arrives or the parent is gone, and return its exit status."""
    signalled, write = os.pipe()  # becomes readable when SIGTERM or SIGINT arrives
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    try:
        gone = os.pidfd_open(parent)
    except ProcessLookupError:
        return _GONE
    if os.getppid() != parent:  # the number is another process's now
        return _GONE
    process = subprocess.Popen(command, start_new_session=True, preexec_fn=partial(die_with_parent, signal.SIGKILL))
    ended = os.pidfd_open(process.pid)
    if _first_of(signalled, gone, ended) != ended:
        os.kill(process.pid, signal.SIGTERM)
        _first_of(ended, seconds=GRACE_SECONDS)
    with suppress(ProcessLookupError):  # before its leader is waited for: until then the number is not reused
        os.killpg(process.pid, signal.SIGKILL)
    status = process.wait()
    return status if status >= 0 else 128 - status


def _first_of(*descriptors: int, seconds: float | None = None) -> int | None:
    """The first readable descriptor; None on timeout."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    ready = poll.poll(None if seconds is None else seconds * 1000)
    return ready[0][0] if ready else None


if __name__ == "__main__":
    sys.exit(supervise(int(sys.argv[1]), sys.argv[2:]))
