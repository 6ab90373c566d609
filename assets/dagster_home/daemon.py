"""Dagster's daemon for as long as a command waits for queued runs, unless one runs already, as beside `darkroom ui`: it
launches what is in the queue, notices lost runs and repeats them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import dagster as dg

from darkroom.pipelines.processes.supervisor import SAFE_PATH
from darkroom.sandbox.errors import UserError

WORKSPACE = str(files("darkroom.assets") / "workspace.yaml")
_QUEUE = "QUEUED_RUN_COORDINATOR"
_ALIVE_SECONDS = 90.0
"""It gives a sign of life every 30 s."""
_MOST_SKEW_SECONDS = 900.0
"""Between two machines' clocks: object stores refuse a machine whose clock is farther off."""
_LOG_CHARACTERS = 1000


class Daemon:
    """The daemon of an instance: found, or started here."""

    def __init__(self, instance: dg.DagsterInstance, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._instance, self._clock = instance, clock
        self._sign, self._sign_at = 0.0, clock()
        self._log = Path(instance.root_directory) / "daemon.log"
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start one if none gives signs of life. Raises ``UserError`` when the own one has ended."""
        if self._process is not None:
            if self._process.poll() is not None:
                log = self._log.read_text(errors="replace")[-_LOG_CHARACTERS:]
                raise UserError(f"Dagster's daemon ended with status {self._process.returncode}; {self._log}:\n{log}")
        elif not self._another_lives():
            self._process = self._start()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            # the next command would take its last one for a daemon that is alive
            self._instance.wipe_daemon_heartbeats()

    def _another_lives(self) -> bool:
        """True if the signs of life of a daemon that launches queued runs change; it writes them by its own clock."""
        sign = self._instance.get_daemon_heartbeats().get(_QUEUE)
        if sign is None or abs(time.time() - sign.timestamp) > _MOST_SKEW_SECONDS:
            return False
        if sign.timestamp != self._sign:
            self._sign, self._sign_at = sign.timestamp, self._clock()
        return self._clock() - self._sign_at < _ALIVE_SECONDS

    def _start(self) -> subprocess.Popen[bytes]:
        # ended with this command, also where it is killed
        supervised = [sys.executable, "-m", "darkroom.pipelines.processes.supervisor", str(os.getpid())]
        command = [*supervised, sys.executable, "-m", "dagster._daemon", "run", "-w", WORKSPACE]
        none, environment = subprocess.DEVNULL, dagster_environment()
        with self._log.open("wb") as log:
            return subprocess.Popen(command, env=environment, stdin=none, stdout=log, stderr=log)


def dagster_environment() -> dict[str, str]:
    """The environment of Dagster's programs: time to start on a loaded machine, no modules of the working directory."""
    return {"DAGSTER_GRPC_TIMEOUT_SECONDS": "600", **os.environ, **SAFE_PATH}


@contextmanager
def daemon(instance: dg.DagsterInstance) -> Iterator[Daemon]:
    """The daemon for the block; stopped at its end if it was started here."""
    daemon_of_instance = Daemon(instance)
    try:
        daemon_of_instance.ensure()
        yield daemon_of_instance
    finally:
        daemon_of_instance.stop()
