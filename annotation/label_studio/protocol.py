"""The server interface of the rounds: a Label Studio (``client.py``) or a recording (``annotation/recordings``)."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Person(NamedTuple):
    """An account on the server."""

    person_id: int
    email: str
    name: str
    role: str
    is_active: bool = True


class TaskListing(NamedTuple):
    """A task on the server."""

    task_id: int
    key: str
    n_annotations: int
    data: Mapping[str, Any] = NOTHING
    overlap: int = 0
    """Annotations that complete it; 0 if unknown."""


class ChangedTask(NamedTuple):
    """A task with new work, and the current state of all its annotations."""

    task_id: int
    annotations: Sequence[Mapping[str, Any]]
    roles: Mapping[int, Sequence[str]] = NOTHING
    """The signers' roles at that time by annotation, where the server knows them (a recording does)."""


class TaskServer(Protocol):
    """A server that takes tasks and returns annotations. All methods raise ``UserError`` only."""

    @property
    def url(self) -> str: ...

    def people(self) -> list[Person]:
        """Every account."""

    def blocked_submissions(self, after: int) -> list[dict[str, Any]]:
        """The server's log of submissions that its validation blocked, from entry ``after`` on."""

    def create_project(self, campaign: str, round: str, *, n_excluded: int, guide: str = "") -> int:
        """The project of a round; an existing one is reused."""

    def check_project(self, project_id: int, round: str, *, guide: str = "") -> bool:
        """Look for the project; its guide becomes ``guide``, if given. Raises ``FormChanged`` if the form differs."""

    def open_to(self, project_id: int, campaign: str, round: str, roles: Sequence[str]) -> None:
        """Give the project's tasks to these of the round's roles only."""

    def n_tasks(self, project_id: int) -> int:
        """The number of tasks of a project."""

    def reset_form(self, project_id: int, round: str, *, guide: str) -> None:
        """Replace the project's form and guide with ours."""

    def import_tasks(self, project_id: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        """The numbers of the new tasks, in order. Not retried: the caller searches for its keys first."""

    def tasks_after(self, project_id: int, task_id: int) -> Iterator[TaskListing]:
        """Tasks with a higher number than ``task_id``."""

    def now(self) -> datetime:
        """The server's clock."""

    def changed_since(
        self, project_id: int, watermark: str, *, n_excluded: int, last_annotation: int = 0
    ) -> Iterator[ChangedTask]:
        """Tasks with more annotations than ``n_excluded``, or skips, changed after ``watermark`` (empty: ever). Also
        those with an annotation whose number is higher than ``last_annotation``: clocks are set back now and then."""

    def unheld_locks(self, project_id: int, *, release: bool) -> list[int]:
        """Tasks locked by people who have answered them, or whose account is closed; ``release``: no more."""

    def withdraw(self, task_ids: Sequence[int]) -> list[int]:
        """Delete those of the tasks that were not begun; returns the ones that are gone."""

    def set_overlaps(self, overlaps: Mapping[int, int]) -> None:
        """Set the number of annotations that complete each task; reopens a task that now lacks some."""

    def delete_task(self, task_id: int) -> None: ...
