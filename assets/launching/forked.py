"""Programs on this machine that share their imports: torch, transformers and TRL take each of them seconds.

Within ``shared_imports()``, a process that has imported them forks every program of ``train/`` that this process
starts (``darkroom.train.runs.fork_server``). Only where torch is built without a GPU: what has used one cannot fork.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from darkroom.train.runs.fork_server import MOST_BYTES
from darkroom.train.runs.supervisor import SAFE_PATH

_SERVER = "darkroom.train.runs.fork_server"
_ENDED = 128 + signal.SIGKILL
"""Exit status of a supervisor that left none."""
_servers: list["ForkServer"] = []


@contextmanager
def shared_imports() -> Iterator[None]:
    """A server, which ``begin_imports`` or the first program starts; it ends with the block."""
    if not version("torch").endswith("+cpu"):
        yield
        return
    with ForkServer() as server:
        _servers.append(server)
        try:
            yield
        finally:
            _servers.remove(server)


def begin_imports() -> None:
    """Where imports are shared, they begin beside what is done meanwhile: there is work, which programs will follow."""
    for server in _servers:
        server.begin()


def forked(command: Sequence[str], environment: Mapping[str, str], output: int | None) -> "ForkedProcess | None":
    """Starts the program by fork; None where no imports are shared, or another Python is asked for."""
    python, *options = command
    if (
        not _servers
        or python != sys.executable
        or options[:1] != ["-m"]
        or not options[1].startswith("darkroom.train.")
    ):
        return None
    return _servers[-1].start(options[1:], environment, output)


class ForkServer:
    """A server, from ``begin`` on. A context manager, which ends it."""

    _process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Nothing more where it has begun."""
        if self._process is not None:
            return
        self._environment = {**os.environ, **SAFE_PATH}
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _SERVER, str(theirs.fileno())],
                env=self._environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._control.close()
            self._process.kill()  # it may still import
            self._process.wait()

    def start(self, words: Sequence[str], environment: Mapping[str, str], output: int | None) -> "ForkedProcess | None":
        """None where the server has ended. The program gets this process's environment as it is now."""
        self.begin()
        now = {**os.environ, **SAFE_PATH, **environment}
        changes: dict[str, str | None] = dict.fromkeys(self._environment.keys() - now.keys())
        changes |= {name: value for name, value in now.items() if self._environment.get(name) != value}
        order = {"words": list(words), "environment": changes, "folder": str(Path.cwd())}
        message = json.dumps(order).encode()
        if len(message) > MOST_BYTES:
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, suppress(OSError):
            outputs = (1, 2) if output is None else (output, output)
            socket.send_fds(self._control, [message], [theirs.fileno(), *outputs])
        pid, descriptors, _, _ = socket.recv_fds(ours, MOST_BYTES, 1)
        if not pid:
            ours.close()
            return None
        return ForkedProcess(int(pid), descriptors[0], ours)


class ForkedProcess:
    """The supervisor of a forked program, as ``subprocess.Popen`` has it."""

    def __init__(self, pid: int, pidfd: int, exchange: socket.socket) -> None:
        self.pid, self._pidfd, self._exchange = pid, pidfd, exchange
        self._status: int | None = None

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        return self._status if self._status is not None or not self._has_ended(0) else self._ended()

    def wait(self, timeout: float | None = None) -> int:
        """The exit status. Raises ``subprocess.TimeoutExpired``."""
        if self._status is None:
            if not self._has_ended(timeout):
                raise subprocess.TimeoutExpired(_SERVER, timeout or 0.0)
            return self._ended()
        return self._status

    def terminate(self) -> None:
        """SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL; its program dies with it."""
        self._signal(signal.SIGKILL)

    def _has_ended(self, seconds: float | None) -> bool:
        return bool(select.select([self._exchange], [], [], seconds)[0])

    def _ended(self) -> int:
        words = self._exchange.recv(MOST_BYTES)
        self._status = int(words) if words else _ENDED
        self._exchange.close()
        os.close(self._pidfd)
        return self._status

    def _signal(self, number: signal.Signals) -> None:
        if self._status is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)
