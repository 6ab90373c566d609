"""A recording in the place of a server: it gives out the tasks that it has, and what people had submitted to them.

The rounds meet it as they meet a Label Studio (``annotation/sync.py``): work is demanded, imported under its key,
pulled and revalidated. A task that the recording has not is taken, and nobody works on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from annotation.journal import Person
from annotation.recording import RecordedTask, Recording
from annotation.rounds import ROUNDS
from annotation.task_server import Changed, Listed

_OPEN = 2**48
"""Numbers of tasks from here on are those that the recording has not."""


class RecordedServer:
    """One recording. ``handed_out`` are the tasks that an earlier run had taken."""

    def __init__(self, recording: Recording, *, handed_out: Iterable[int] = ()) -> None:
        self._recording = recording
        self._by_key = {task.key: task for task in recording.tasks}
        self._handed_out = set(handed_out)
        self._n_served: Counter[int] = Counter()

    @property
    def url(self) -> str:
        """No address: what people see instead of one."""
        return f"recording of {self._recording.campaign.name}"

    @property
    def is_exhausted(self) -> bool:
        """Whether all that was submitted to tasks that were handed out has been given."""
        return all(self._n_served[task.id] == len(task.states) for task in self._open_tasks())

    def people(self) -> list[Person]:
        """Every account, under a made-up address."""
        return list(self._recording.people)

    def hits(self, after: int) -> list[dict[str, Any]]:
        """What the gate had refused, from the place ``after`` on."""
        return [dict(hit) for hit in self._recording.hits[after:]]

    def create_project(self, campaign: str, round: str, *, n_seats: int) -> int:
        """The round's place: recorded projects need not be of one server."""
        return ROUNDS.index(round) + 1

    def check_project(self, project_id: int, round: str) -> bool:
        """It is there."""
        return True

    def reset_form(self, project_id: int, round: str) -> None:
        """Nobody fills in a form."""

    def import_tasks(self, project_id: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        """The numbers that these tasks had."""
        numbers = [self._number(str(task["data"]["key"])) for task in tasks]
        self._handed_out.update(numbers)
        return numbers

    def tasks_after(self, project_id: int, task_id: int) -> Iterator[Listed]:
        """None: what a killed run had taken is taken again, under the same number."""
        return iter(())

    def now(self) -> datetime:
        """Time stands still here."""
        return datetime.fromtimestamp(0, UTC)

    def changed_since(self, project_id: int, watermark: str, *, n_seats: int) -> Iterator[Changed]:
        """The next state of every task of the project that was handed out and has one."""
        for task in self._open_tasks():
            if task.round == ROUNDS[project_id - 1] and self._n_served[task.id] < len(task.states):
                self._n_served[task.id] += 1
                yield Changed(task.id, task.states[self._n_served[task.id] - 1])

    def set_overlaps(self, overlaps: Mapping[int, int]) -> None:
        """Nobody else will come."""

    def delete_task(self, task_id: int) -> None:
        """There is none to take away."""

    def _open_tasks(self) -> Iterator[RecordedTask]:
        return (task for task in self._recording.tasks if task.id in self._handed_out)

    def _number(self, key: str) -> int:
        task = self._by_key.get(key)
        return task.id if task is not None else _OPEN + int(key[:11], 16)
