"""A program on this machine, below a process that ends all of it when it is told to and when Dagster is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from assets.launching.job import Ending
from train.lifeline import GRACE_SECONDS


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
