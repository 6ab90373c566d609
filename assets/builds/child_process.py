"""A program beside a command's own jobs: a process, since Dagster redirects a whole process's output for a run.

Its lines are printed whole, each behind a bar. It ends with the command, also where that is killed. It marks what it
has done, which the command may wait for.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from rich.console import Console
from rich.text import Text

from darkroom.assets.dagster_home.instance import MaterializationFailed
from darkroom.assets.launching import Program
from darkroom.assets.launching.jobs import Ending, LocalJob
from darkroom.assets.launching.order import Order, temporary_order
from darkroom.assets.terminal.run_lines import STAND
from darkroom.train.runs.supervisor import VARIABLE, JobDirectory

BAR = "│ "
_SECONDS = 0.2


def mark(name: str) -> None:
    """In the program: ``name`` is done. Nothing where no command waits."""
    exchange = JobDirectory.of_this_program()
    if exchange is not None:
        _mark(exchange, name).touch()


def _mark(exchange: JobDirectory, name: str) -> Path:
    return exchange.folder / f"{name}.done"


@contextmanager
def beside(console: Console, program: Program) -> Iterator["Beside"]:
    """Yields ``program`` to be started; at the end of the block it is started, if it was not, and awaited.

    An error within the block stops it. Raises ``MaterializationFailed`` with the program's error message.
    """
    with temporary_order(program.command(sys.executable)) as order:
        process = Beside(console, order)
        try:
            yield process
            process.wait()
        except BaseException:
            process.stop()
            raise


class Beside:
    """The process of an order, from ``start`` on."""

    def __init__(self, console: Console, order: Order) -> None:
        self._console, self._order = console, order
        self._is_terminal = console.is_terminal  # while a run redirects the output, it says no
        self._job: LocalJob | None = None
        self._stand = ""

    def start(self) -> None:
        """Nothing more where it has started."""
        if self._job is not None:
            return
        read, write = os.pipe()
        self._job = LocalJob(self._order.command, {VARIABLE: str(self._order.exchange.folder)}, output=write)
        os.close(write)
        self._printer = Thread(target=self._print, args=(read,), daemon=True, name="beside")
        self._printer.start()

    def wait(self, name: str = "") -> None:
        """Until it has marked ``name``; without one until it ends. Raises ``MaterializationFailed``."""
        self.start()
        with self._console.status("") as status:
            while (ending := self._ended()) is None:
                if name and _mark(self._order.exchange, name).exists():
                    return
                status.update(Text(self._stand))
                time.sleep(_SECONDS)
        self._printer.join()
        if not ending.succeeded:
            raise MaterializationFailed(self._order.exchange.last_words() or ending.words)

    def stop(self) -> None:
        if self._job is not None:
            self._job.stop()

    def _ended(self) -> Ending | None:
        return self._job.ended(closed=False) if self._job else None

    def _print(self, descriptor: int) -> None:
        """A terminal gets no line of where its run stands: its last line says where the command's own run stands."""
        with open(descriptor, encoding="utf-8", errors="replace") as output:
            for line in output:
                if self._is_terminal and line.startswith(STAND):
                    self._stand = line.strip()
                else:
                    self._console.print(Text(BAR + line.rstrip("\n")), soft_wrap=True)
