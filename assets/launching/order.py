"""The folder of one launch: temporary on this machine; ``<output>.job/<n>`` where the job may outlive the run.

A job that was submitted when a run is lost is not submitted again: the next run of the same command takes it over, with
all its messages. A launch is over when its result was read, when it failed, and when it was stopped. The next job then
gets a folder of its own: a stopped job that still waits in a queue and starts late finds the stop file in its own
folder, and neither reports to the new run nor writes to its output.
"""

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import dagster as dg
from dagster_pipes import PipesDefaultMessageWriter

from darkroom.assets.graph.stage_assets import terminal
from darkroom.assets.launching.jobs import LaunchError
from darkroom.train.runs.supervisor import SECONDS, JobDirectory

_ORDER, _OVER = "order.json", "over"
_SECONDS = 0.2
_SIGN_SECONDS = 15 * SECONDS
"""Within which a living job gives a sign, on a busy machine and a shared file system too."""
MOST_OBSERVATIONS = 100
"""Maximum per run: each is a row in Dagster's event log and a point of its plots."""
_STEP = "step"


@dataclass(frozen=True, slots=True)
class Order:
    """A command and its exchange folder; ``job_id``: the scheduler's id of a submitted job."""

    command: tuple[str, ...]
    exchange: JobDirectory
    job_id: str = ""
    is_taken_over: bool = False

    def on_its_way(self, job_id: str) -> None:
        """Records the submitted job, so that a later run finds it."""
        order = {"command": list(self.command), "job_id": job_id}
        (self.exchange.folder / _ORDER).write_text(json.dumps(order, indent=2) + "\n")

    def over(self) -> None:
        (self.exchange.folder / _OVER).touch()


@contextmanager
def temporary_order(command: Sequence[str]) -> Iterator[Order]:
    """The order of a program that ends with this run."""
    with tempfile.TemporaryDirectory(prefix="darkroom-") as folder:
        yield Order(tuple(command), JobDirectory(Path(folder)))


def lasting_order(command: Sequence[str], output: Path) -> Order:
    """The order of a job on another machine; a submitted job of the same command is taken over.

    Raises ``LaunchError`` while another command's job writes to the same output.
    """
    folder = output.with_name(f"{output.name}.job").absolute()
    number = max((int(path.name) for path in folder.glob("*") if path.name.isdecimal()), default=0)
    if number:
        last = JobDirectory(folder / str(number))
        open_order = _open_order(last)
        if open_order is not None and open_order.command == tuple(command):
            return open_order
        if open_order is not None and _is_alive(last):
            raise LaunchError(
                f"another job writes to {output}: {' '.join(open_order.command)}. Wait for it, or end it: "
                f"touch {last.stop}"
            )
        last.stop.touch()
    exchange = JobDirectory(folder / str(number + 1))
    exchange.folder.mkdir(parents=True)
    return Order(tuple(command), exchange)


def _open_order(exchange: JobDirectory) -> Order | None:
    """The order of a submitted job that is not over."""
    path = exchange.folder / _ORDER
    is_over = (exchange.folder / _OVER).exists() or exchange.stop.exists() or bool(exchange.last_words())
    if is_over or not path.is_file():
        return None
    fields = json.loads(path.read_text())
    return Order(tuple(fields["command"]), exchange, fields["job_id"], is_taken_over=True)


def _is_alive(exchange: JobDirectory) -> bool:
    if not exchange.alive.is_file():
        return False
    sign, deadline = exchange.alive.read_text(), time.monotonic() + _SIGN_SECONDS
    while time.monotonic() < deadline:
        if exchange.alive.read_text() not in ("", sign):
            return True
        time.sleep(_SECONDS)
    return False


class FolderMessages(dg.PipesMessageReader):
    """Reads a file of Pipes messages from its beginning and follows it as it grows.

    Dagster's own file reader skips existing messages; a run that takes over a job needs them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def read_messages(self, handler: Any) -> Iterator[dict[str, Any]]:
        """Reads in a thread until the session is closed and all messages are handled."""
        over = Event()
        self._path.touch()
        thread = Thread(target=self._read, args=(handler, over), daemon=True, name="messages")
        thread.start()
        try:
            yield {PipesDefaultMessageWriter.FILE_PATH_KEY: str(self._path)}
        finally:
            over.set()
            thread.join()

    @property
    def expected_writer_count(self) -> int:
        """One: the first process of the program."""
        return 1

    def no_messages_debug_text(self) -> str:
        return f"Attempted to read messages from {self._path}."

    def _read(self, handler: Any, over: Event) -> None:
        with self._path.open(encoding="utf-8") as file:
            line = ""
            while True:
                was_over = over.is_set()
                line += file.readline()
                if line.endswith("\n"):
                    handler.handle_message(json.loads(line))
                    line = ""
                elif was_over:
                    return
                else:
                    time.sleep(_SECONDS)


class StepLog:
    """Logs each step that a program reports once, as a line and as an observation."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context, self._n_logged = context, 0

    def update(self, session: dg.PipesSession) -> None:
        """Logs a line for every step since the last call, and observations of at most ``MOST_OBSERVATIONS`` and of
        every evaluation."""
        messages = session.get_custom_messages()[self._n_logged :]
        for message in messages:
            self._n_logged += 1
            if message.get("kind") == _STEP:
                step, n_steps = message["step"], message["n_steps"]
                self._context.log.info(message["said"])
                if (show := terminal.get()) is not None:
                    show(message["said"], 0.0)  # it says itself what is left of the program
                values: dict[str, float] = message["metrics"]
                if _is_observed(step, n_steps) or any(name.startswith("eval_") for name in values):
                    metrics = {name: dg.MetadataValue.float(float(value)) for name, value in values.items()}
                    metadata = {"step": dg.MetadataValue.int(step), **metrics}
                    self._context.log_event(dg.AssetObservation(self._context.asset_key, metadata=metadata))


def _is_observed(step: int, n_steps: int) -> bool:
    return step in (1, n_steps) or step % max(1, -(-n_steps // MOST_OBSERVATIONS)) == 0
