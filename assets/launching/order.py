"""The folder of one launch: a temporary one on this machine; ``<output>.job/<n>`` where the job may outlive the run.

A job that is on its way when a run is lost is not started again: the next run of the same command takes it over, with
all that it has reported. That ends when its result was taken in, when it failed, and when it was told to stop. Then
the next job has a folder of its own: one that waits in a queue still, and starts late, finds the wish to stop in its
folder, and neither reports to the new run nor writes to its output.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assets.launching.job import LaunchFault
from train.exchange import SECONDS, Exchange

_ORDER, _OVER = "order.json", "over"


@dataclass(frozen=True, slots=True)
class Order:
    """A command and the exchange with it; ``job_id`` is the scheduler's name of a job that is on its way."""

    command: tuple[str, ...]
    exchange: Exchange
    job_id: str = ""
    is_taken_over: bool = False

    def on_its_way(self, job_id: str) -> None:
        """Notes the job, so that a later run finds it."""
        order = {"command": list(self.command), "job_id": job_id}
        (self.exchange.folder / _ORDER).write_text(json.dumps(order, indent=2) + "\n")

    def over(self) -> None:
        """Nothing more is expected of it."""
        (self.exchange.folder / _OVER).touch()


@contextmanager
def temporary_order(command: Sequence[str]) -> Iterator[Order]:
    """For a program that ends with this run."""
    with tempfile.TemporaryDirectory(prefix="darkroom-") as folder:
        yield Order(tuple(command), Exchange(Path(folder)))


def lasting_order(command: Sequence[str], output: Path) -> Order:
    """For a job of another machine; one that is on its way is taken over.

    Raises ``LaunchFault`` while another command's job writes to the same output.
    """
    folder = output.with_name(f"{output.name}.job").absolute()
    number = max((int(path.name) for path in folder.glob("*") if path.name.isdecimal()), default=0)
    if number:
        last = Exchange(folder / str(number))
        known = _known(last)
        if known is not None and known.command == tuple(command):
            return known
        if known is not None and _is_alive(last):
            raise LaunchFault(
                f"another job is at work on {output}: {' '.join(known.command)}. Wait for it, or end it: "
                f"touch {last.stop}"
            )
        last.stop.touch()
    exchange = Exchange(folder / str(number + 1))
    exchange.folder.mkdir(parents=True)
    return Order(tuple(command), exchange)


def _known(exchange: Exchange) -> Order | None:
    """A job of which something is still expected."""
    path = exchange.folder / _ORDER
    is_over = (exchange.folder / _OVER).exists() or exchange.stop.exists() or bool(exchange.last_words())
    if is_over or not path.is_file():
        return None
    found = json.loads(path.read_text())
    return Order(tuple(found["command"]), exchange, found["job_id"], is_taken_over=True)


def _is_alive(exchange: Exchange) -> bool:
    if not exchange.alive.is_file():
        return False
    sign = exchange.alive.read_text()
    time.sleep(2 * SECONDS)
    return exchange.alive.read_text() != sign
