"""Starts a command and sees to it that all of it ends: when it is told to, and when whoever started it is gone.

    python -m train.lifeline PARENT COMMAND...

PARENT is the process id of whoever starts this. The command gets a process group of its own. On SIGTERM or SIGINT, or
when the parent is gone (killed with SIGKILL, too), the command is asked to end by SIGTERM and killed with all its group
after ``GRACE_SECONDS``. What has left the group ends otherwise: sandboxes end with the program that opened them.
The exit status is the command's; 128 and the signal's number where a signal ended it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence

GRACE_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


def die_with_parent(signal_number: int) -> None:
    """This process gets the signal when the thread that started it ends."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def supervise(parent: int, command: Sequence[str]) -> int:
    """Runs ``command`` and returns its exit status."""
    told = _told_to_end()
    try:
        gone = os.pidfd_open(parent)
    except ProcessLookupError:
        return 128 + signal.SIGTERM
    process = subprocess.Popen(command, start_new_session=True, preexec_fn=_die_with_supervisor)
    ended = os.pidfd_open(process.pid)
    if os.getppid() != parent or _first_of(told, gone, ended) != ended:
        process.terminate()
        _first_of(ended, seconds=GRACE_SECONDS)
    _kill_group(process.pid)  # before its leader is waited for: until then the number is nobody else's
    return _status(process.wait())


def _told_to_end() -> int:
    """A file descriptor that can be read as soon as a signal asks this process to end."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return read


def _first_of(*descriptors: int, seconds: float | None = None) -> int | None:
    """The first of the descriptors that can be read; None when the time is over."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    ready = poll.poll(None if seconds is None else seconds * 1000)
    return ready[0][0] if ready else None


def _die_with_supervisor() -> None:
    die_with_parent(signal.SIGKILL)


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return  # everybody has ended


def _status(code: int) -> int:
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(supervise(int(sys.argv[1]), sys.argv[2:]))
