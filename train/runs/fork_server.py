"""A process that has imported torch, transformers and TRL, and forks programs: each would import them for seconds.

    python -m darkroom.train.runs.fork_server DESCRIPTOR

DESCRIPTOR is its end of a pair of sockets. An order is one message: JSON (``words``: what follows ``python -m``,
``environment``: what differs in it, null for what is gone; ``folder``) with three descriptors: the starter's socket for
this program, its standard output and its standard error. The answer on the program's socket is the number and a pidfd
of its supervisor (see ``darkroom.train.runs.supervisor``), which leaves the exit status there in the end. The server
ends with its starter, and supervisors end the programs that run then.

The fork server of ``multiprocessing`` gives a program neither its starter's output, environment and folder as they are
now, nor a supervisor. This one imports none of our own modules that a program runs, and never asks torch for a GPU:
what has used one cannot fork.
"""

import atexit
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from typing import Any

from darkroom.train.runs.command_line import ENVIRONMENT
from darkroom.train.runs.supervisor import GONE, die_with_parent, new_session, supervise_process, termination_signals

LIBRARIES = ("torch", "transformers.models.auto.modeling_auto", "trl.trainer.sft_trainer", "trl.trainer.grpo_trainer")
MOST_BYTES, N_DESCRIPTORS = 1 << 17, 3


def main() -> None:
    """Serves orders until the starter has closed its socket."""
    atexit.register(_leave)  # before the libraries' own, so that it is called after them
    control, starter = socket.socket(fileno=int(sys.argv[1])), os.getppid()
    gone = os.pidfd_open(starter)
    if os.getppid() != starter:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the supervisors, and this process ends with them
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for library in LIBRARIES:
        importlib.import_module(library)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MOST_BYTES, N_DESCRIPTORS)
        if not message:
            return
        if os.fork() == 0:
            control.close()
            _supervise(gone, json.loads(message), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _supervise(gone: int, order: dict[str, Any], job: int, output: int, errors: int) -> None:
    """In the first child: as ``darkroom.train.runs.supervisor`` does, but forks the program instead of starting it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signalled = termination_signals()
    own = os.getpid()
    program = os.fork()
    if program == 0:
        die_with_parent(signal.SIGKILL)
        if os.getppid() != own:
            os._exit(GONE)
        _run(order, job, output, errors)
    with socket.socket(fileno=job) as starter:
        socket.send_fds(starter, [str(own).encode()], [os.pidfd_open(own)])
        starter.send(str(supervise_process(program, signalled, gone)).encode())
    os._exit(0)


def _run(order: dict[str, Any], job: int, output: int, errors: int) -> None:
    """In the second child: runs the program as its own ``python -m`` would, and ends with it."""
    new_session()
    os.close(job)
    with open(os.devnull) as nothing:
        for standard, descriptor in enumerate((nothing.fileno(), output, errors)):
            os.dup2(descriptor, standard)
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())  # type: ignore[union-attr]
    os.chdir(order["folder"])
    for name, value in order["environment"].items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
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
    """Ends a finished program after its other exit functions: to take its objects apart, and those of the libraries,
    took 1.8 s of an evaluation and gives nothing back that the kernel does not."""
    if _finished:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
