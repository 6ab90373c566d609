"""A job's directory, through which it and its starter communicate, and the supervisor that ends its processes.

    python -m darkroom.pipelines.processes.supervisor PARENT COMMAND...

PARENT is the process id of the starter. The command gets a process group of its own. On SIGTERM or SIGINT, or when the
parent has ended (by SIGKILL, too), the command receives SIGTERM, and SIGKILL with its whole group after
``GRACE_SECONDS``. Sandboxes, which leave the group, end with the program that opened them. The exit status is the
command's; 128 and the signal's number where a signal ended it.

    python -m darkroom.pipelines.processes.supervisor fork LIBRARY...

imports the libraries once, then forks a program for each line of its standard input (JSON: ``words``, what follows
``python -m``; ``environment``; ``folder``; ``outputs``, the files of its standard output and error), one after another,
and answers each with its exit status.

A job directory (``DARKROOM_EXCHANGE``) holds

messages   Dagster Pipes: one JSON object a line, from the program's first process
error      the error message of a program that failed (``JobDirectory.error`` has the file's name)
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import runpy
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

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


def fork_programs(libraries: Sequence[str]) -> None:
    """Fork a program for each line, as above. Each saves the seconds of the imports, and of the interpreter's end. A
    SIGTERM ends the program that runs, then this process."""
    atexit.register(_leave)  # before the libraries' own, so that it is called after them
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    for library in libraries:
        import_module(library)
    while (line := sys.stdin.readline()) and _fork(line, answers):
        pass


def _fork(line: str, answers: TextIO) -> bool:
    """Answer one line; False once a signal told the program to end."""
    if (program := os.fork()) == 0:
        answers.close()
        _run(json.loads(line))
    signals: list[int] = []

    def end(number: int, _: object) -> None:
        signals.append(number)
        os.kill(program, number)

    signal.signal(signal.SIGTERM, end)
    status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    print(status if status >= 0 else 128 - status, file=answers, flush=True)
    return not signals


def _run(order: dict[str, Any]) -> None:
    """Run the program as its own ``python -m`` would, in the fork, and end with it."""
    die_with_parent(signal.SIGKILL)
    files = (os.devnull, os.O_RDONLY), *((path, os.O_WRONLY | os.O_APPEND) for path in order["outputs"])
    for standard, (path, flags) in enumerate(files):
        os.dup2(os.open(path, flags), standard)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    module, *arguments = order["words"]
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        if ending.code:
            raise
    _finished.append(module)
    sys.exit()


_finished: list[str] = []
"""The program that this process was forked for, once it has ended well."""


def _leave() -> None:
    if _finished:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "fork":
        fork_programs(sys.argv[2:])
    else:
        sys.exit(supervise(int(sys.argv[1]), sys.argv[2:]))
