"""The folder through which a program and whoever started it speak: on this machine, or over a shared file system.

messages   Dagster Pipes: one JSON object a line, from the program's first process
fault      the last words of a program that failed
alive      a number that grows while the program lives
stop       made by whoever started it: the program is to end, also when it starts later

A program knows its folder by ``DARKROOM_EXCHANGE``; without it there is nobody to speak to.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "DARKROOM_EXCHANGE"
SECONDS = 2.0
"""Between two signs of life, and between two looks for a wish to stop."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The files of one folder."""

    folder: Path

    @classmethod
    def of_this_program(cls) -> Exchange | None:
        """The folder that the environment names."""
        named = os.environ.get(VARIABLE)
        return cls(Path(named)) if named else None

    @property
    def messages(self) -> Path:
        """What the program reports."""
        return self.folder / "messages"

    @property
    def fault(self) -> Path:
        """Why it failed, in words for a person."""
        return self.folder / "fault"

    @property
    def alive(self) -> Path:
        """Its signs of life."""
        return self.folder / "alive"

    @property
    def stop(self) -> Path:
        """There when the program is to end."""
        return self.folder / "stop"

    def last_words(self) -> str:
        """What the program said when it failed; empty when it said nothing."""
        return self.fault.read_text().strip() if self.fault.is_file() else ""


def attend(exchange: Exchange, *, first: bool) -> None:
    """Gives signs of life (the ``first`` process does) and ends this process when it is told to stop; in a thread.

    A job that starts after it was told to stop ends here, before it has written anything.
    """
    if exchange.stop.exists():
        signal.raise_signal(signal.SIGTERM)
    threading.Thread(target=_attend, args=(exchange, first), daemon=True, name="exchange").start()


def _attend(exchange: Exchange, first: bool) -> None:
    n_signs = 0
    while not exchange.stop.exists():
        n_signs += 1
        if first:
            exchange.alive.write_text(str(n_signs))
        time.sleep(SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
