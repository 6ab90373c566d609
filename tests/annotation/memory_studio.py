"""A Label Studio in memory, with projects, tasks, filters and accounts as the real one has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from darkroom.annotation.label_studio.protocol import ChangedTask, Person, TaskListing
from tests.annotation.desk import PEOPLE


@dataclass
class Task:
    """A task on the server."""

    project: int
    data: dict[str, Any]
    overlap: int
    annotations: list[dict[str, Any]]
    updated_at: datetime
    predictions: Sequence[Mapping[str, Any]] = ()

    @property
    def n_annotations(self) -> int:
        return sum(not raw.get("was_cancelled") for raw in self.annotations)


class OpenStudio:
    """What servers in memory have in common: they refuse and block nothing. A subclass lists a project's tasks."""

    url = "http://studio"
    clock = datetime(2026, 5, 1, 10, tzinfo=UTC)
    projects: Any
    unheld: Sequence[int] = ()

    def blocked_submissions(self, after: int) -> list[Any]:
        return []

    def check_project(self, project_id: int, round: str, **more: Any) -> bool:
        return project_id in self.projects

    def unheld_locks(self, project_id: int, *, release: bool) -> list[int]:
        """None, unless a test names some."""
        unheld = list(self.unheld)
        if release:
            self.unheld = []
        return unheld

    def open_to(self, project_id: int, campaign: str, round: str, roles: Sequence[str]) -> None:
        pass

    def now(self) -> datetime:
        return self.clock

    def n_tasks(self, project_id: int) -> int:
        return len(self.listed(project_id))

    def tasks_after(self, project_id: int, task_id: int) -> Iterator[TaskListing]:
        return (task for task in self.listed(project_id) if task.task_id > task_id)

    def listed(self, project_id: int) -> list[TaskListing]:
        raise NotImplementedError


@dataclass
class MemoryStudio(OpenStudio):
    """The server; ``clock`` moves by a minute with every act."""

    accounts: list[Person] = field(default_factory=lambda: list(PEOPLE))
    projects: dict[int, tuple[str, int]] = field(default_factory=dict)
    tasks: dict[int, Task] = field(default_factory=dict)
    n_made: int = 0
    opened: set[int] = field(default_factory=set)
    """Tasks that the label stream has given to somebody."""

    def people(self) -> list[Person]:
        return self.accounts

    def set_role(self, person_id: int, role: str) -> None:
        """As `darkroom annotate users add` does it."""
        self.accounts = [one._replace(role=role) if one.person_id == person_id else one for one in self.accounts]

    def create_project(self, campaign: str, round: str, *, n_excluded: int, **more: Any) -> int:
        self.projects[len(self.projects) + 1] = (round, 1 + n_excluded)
        return len(self.projects)

    def reset_form(self, project_id: int, round: str, **more: Any) -> None:
        pass

    def import_tasks(self, project_id: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        numbers = []
        for task in tasks:
            self.n_made += 1
            numbers.append(self.n_made)
            overlap = self.projects[project_id][1]
            made = self.tasks[self.n_made] = Task(project_id, dict(task["data"]), overlap, [], self.clock)
            made.predictions = task.get("predictions", ())
            for seat in task.get("annotations", ()):
                made.annotations.append({**seat, "id": self._next(), "was_cancelled": False, "lead_time": None})
        return numbers

    def listed(self, project_id: int) -> list[TaskListing]:
        return [
            TaskListing(number, task.data["key"], task.n_annotations, task.data, task.overlap)
            for number, task in sorted(self.tasks.items())
            if task.project == project_id
        ]

    def changed_since(
        self, project_id: int, watermark: str, *, n_excluded: int, last_annotation: int = 0
    ) -> Iterator[ChangedTask]:
        since = datetime.fromisoformat(watermark) if watermark else datetime(1, 1, 1, tzinfo=UTC)
        for number, task in sorted(self.tasks.items()):
            is_cancelled = any(raw.get("was_cancelled") for raw in task.annotations)
            is_listed = task.n_annotations > n_excluded or is_cancelled
            is_new = task.updated_at > since or any(raw["id"] > last_annotation for raw in task.annotations)
            if task.project == project_id and is_new and is_listed:
                yield ChangedTask(number, [dict(raw) for raw in task.annotations])

    def set_overlaps(self, overlaps: Mapping[int, int]) -> None:
        for number, overlap in overlaps.items():
            self.tasks[number].overlap = overlap

    def withdraw(self, task_ids: Sequence[int]) -> list[int]:
        answered = {n for n, task in self.tasks.items() if any(raw["result"] for raw in task.annotations)}
        gone = [n for n in task_ids if n not in answered | self.opened]
        for n in gone:
            self.tasks.pop(n, None)
        return gone

    def delete_task(self, task_id: int) -> None:
        del self.tasks[task_id]

    def submit(self, task_id: int, person_id: int, result: list[dict[str, Any]], **more: Any) -> None:
        """A person's annotation."""
        self.clock += timedelta(minutes=1)
        raw = {"id": self._next(), "completed_by": person_id, "updated_by": person_id, "result": result}
        created = {"created_at": self.clock.isoformat(), "lead_time": 5.0, "was_cancelled": False}
        self.tasks[task_id].annotations.append(raw | created | more)
        self.tasks[task_id].updated_at = self.clock

    def open_task(self, round: str) -> int:
        """The newest task of a round."""
        return max(n for n, task in self.tasks.items() if self.projects[task.project][0] == round)

    def _next(self) -> int:
        self.n_made += 1
        return self.n_made
