"""What a program reports through Pipes, from its exchange folder; its steps as lines of the log and observations."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import dagster as dg
from dagster_pipes import PipesDefaultMessageWriter

_SECONDS = 0.2
MOST_OBSERVATIONS = 100
"""Of one run: each is a row in Dagster's event log, and a point of its plots."""
_STEP = "step"


class FolderMessages(dg.PipesMessageReader):
    """Reads a file of messages from its beginning, and goes on as it grows.

    Unlike Dagster's own reader of files it keeps what is already there: a run that was interrupted takes over a job.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def read_messages(self, handler: Any) -> Iterator[dict[str, Any]]:
        """Reads in a thread until the session is closed and nothing new is there."""
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
        """One program reports, by its first process."""
        return 1

    def no_messages_debug_text(self) -> str:
        """For Dagster's own words when a program says nothing."""
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


class Steps:
    """The steps that a program reported, each told once."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context, self._n_told = context, 0

    def tell(self, session: dg.PipesSession) -> None:
        """Logs a line for every step since the last call, and observations of at most ``MOST_OBSERVATIONS``."""
        messages = session.get_custom_messages()[self._n_told :]
        for message in messages:
            self._n_told += 1
            if message.get("kind") == _STEP:
                self._context.log.info(message["said"])
                if _is_observed(message["step"], message["n_steps"]):
                    self._context.log_event(dg.AssetObservation(self._context.asset_key, metadata=_numbers(message)))


def _is_observed(step: int, n_steps: int) -> bool:
    return step in (1, n_steps) or step % max(1, -(-n_steps // MOST_OBSERVATIONS)) == 0


def _numbers(message: dict[str, Any]) -> dict[str, dg.MetadataValue]:
    metrics = {name: dg.MetadataValue.float(float(value)) for name, value in message["metrics"].items()}
    return {"step": dg.MetadataValue.int(message["step"]), **metrics}
