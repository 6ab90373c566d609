"""What the rounds ask of a server, whether it is a Label Studio (``studio.py``) or a recorded one (``recorded.py``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from annotation.journal import Person


class Listed(NamedTuple):
    """A task on the server."""

    task_id: int
    key: str
    n_annotations: int


class Changed(NamedTuple):
    """A task that was worked on, with all of its annotations as they are now."""

    task_id: int
    annotations: Sequence[Mapping[str, Any]]


class TaskServer(Protocol):
    """Where tasks go and annotations come from; ``AnnotationFault`` is all that its methods raise."""

    @property
    def url(self) -> str:
        """Where people find it."""

    def people(self) -> list[Person]:
        """Every account."""

    def hits(self, after: int) -> list[dict[str, Any]]:
        """What the gate refused, from the place ``after`` on."""

    def create_project(self, campaign: str, round: str, *, n_seats: int) -> int:
        """The project of a round; the one that is there is taken."""

    def check_project(self, project_id: int, round: str) -> bool:
        """Whether the project is there, with our form."""

    def reset_form(self, project_id: int, round: str) -> None:
        """Gives the project our form."""

    def import_tasks(self, project_id: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        """The new tasks' numbers, in order."""

    def tasks_after(self, project_id: int, task_id: int) -> Iterator[Listed]:
        """Every task that is younger than ``task_id``."""

    def now(self) -> datetime:
        """The server's clock."""

    def changed_since(self, project_id: int, watermark: str, *, n_seats: int) -> Iterator[Changed]:
        """Tasks that somebody worked on after ``watermark`` (empty: ever)."""

    def set_overlaps(self, overlaps: Mapping[int, int]) -> None:
        """How many people's annotations complete each task."""

    def delete_task(self, task_id: int) -> None:
        """Takes a task away."""
