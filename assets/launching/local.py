"""A program on this machine, below a process that ends all of it when it is told to and when Dagster is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from assets.launching.job import Ending, LaunchFault
from assets.launching.order import temporary_order
from assets.launching.program import Program
from train.exchange import VARIABLE
from train.lifeline import GRACE_SECONDS

_SECONDS = 0.2


class LocalJob:
    """Starts when it is made. Its output goes where Dagster's goes: into the run's logs."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        supervised = [sys.executable, "-m", "train.lifeline", str(os.getpid()), *command]
        self._process = subprocess.Popen(supervised, env={**os.environ, **environment}, stdin=subprocess.DEVNULL)

    @property
    def where(self) -> str:
        """The process."""
        return f"this machine, process {self._process.pid}"

    def ended(self, *, closed: bool) -> Ending | None:
        """By its exit status."""
        status = self._process.poll()
        return None if status is None else Ending(status == 0, f"it ended with exit status {status}")

    def stop(self) -> None:
        """Asks it to end, and kills what has not ended after the grace time."""
        self._process.terminate()
        try:
            self._process.wait(GRACE_SECONDS + 5)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its command dies with it
            self._process.wait()


def run_here(program: Program) -> None:
    """Runs a program that reports nothing to its end. Raises ``LaunchFault`` with its last words."""
    with temporary_order(program.command(sys.executable)) as order:
        job = LocalJob(order.command, {VARIABLE: str(order.exchange.folder)})
        try:
            while (ending := job.ended(closed=False)) is None:
                time.sleep(_SECONDS)
        except BaseException:
            job.stop()
            raise
        if not ending.succeeded:
            raise LaunchFault(order.exchange.last_words() or ending.words)
