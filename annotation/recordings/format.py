"""A recorded campaign: one file with its tasks and annotations, to build its tables without a server.

    {"format": "darkroom annotations 1", "note": "…", "campaign": {"name": "streets", "max_share": 0.05, …},
     "images": [{"image": {"sha256": "…", "width": 4000, …}, "source": "ours", "source_row": "a.jpg", "license": "…"}],
     "people": [[7, "person7@example.org", "Person 7", "annotator"]],
     "tasks": [{"id": 31, "project": 2, "round": "cross_check", "data": {"key": "…", "image": "/darkroom/images/…"},
                "annotations": [{"id": 40, "completed_by": 7, "result": […], …}], "earlier": []}],
     "hits": [{"person": "person7@example.org", "task_id": 31, "problems": ["…"], "at": "…"}]}

Annotations are as Label Studio's API returns them, without names of people; accounts keep their numbers and get made-up
addresses. ``earlier`` holds a task's annotations as of the next round's start, if one was changed after that. Comments
are kept as written. Images are not included.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pydantic

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.campaign import Campaign, Terms
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.journal_file import AnnotationVersion, RecordTask
from darkroom.annotation.rounds.submissions import ROUNDS, frozen_bases, used_version
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.records.annotation import Annotators
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.user_files import field_errors

BUNDLED = Path(__file__).with_name("demo.json")
"""On images of the embedded source ``demo``; made by ``python -m tests.annotation.recordings.record_annotations``."""
_RECORDED = ("id", "completed_by", "updated_by", "created_at", "updated_at", "lead_time", "was_cancelled", "result")
"""Fields of an annotation; the others are irrelevant or name people."""


class RecordedAnnotation(pydantic.BaseModel, extra="allow", frozen=True):
    """One annotation; validated later, when submissions are read."""

    id: int


class RecordedTask(pydantic.BaseModel, extra="forbid", frozen=True):
    """One task with its annotations."""

    id: int
    project: int
    round: str
    data: dict[str, Any]
    annotations: tuple[RecordedAnnotation, ...]
    earlier: tuple[RecordedAnnotation, ...] = ()
    terms: Terms | None = None
    """None in recordings of older versions: the campaign's rules."""
    roles: dict[int, tuple[str, ...]] = {}
    """The signers' roles at that time, by annotation, where they differ from ``people``."""

    @property
    def key(self) -> str:
        return str(self.data.get("key", ""))

    @property
    def states(self) -> list[list[dict[str, Any]]]:
        """The states of its annotations in the order of arrival; empty for an untouched task."""
        states = [state for state in (self.earlier, self.annotations) if state]
        return [[annotation.model_dump() for annotation in state] for state in states]


class Recording(pydantic.BaseModel, extra="forbid", frozen=True):
    """The whole file."""

    format: Literal["darkroom annotations 1"] = "darkroom annotations 1"
    note: str = ""
    """Its origin, for readers of its tables."""
    annotators: Annotators = "people"
    campaign: Campaign
    images: tuple[PoolImage, ...]
    people: tuple[Person, ...]
    tasks: tuple[RecordedTask, ...]
    hits: tuple[dict[str, Any], ...] = ()

    @property
    def digest(self) -> str:
        return digest(self.model_dump(mode="json"))


def read_recording(path: Path = BUNDLED) -> Recording:
    """Raises ``AnnotationError`` with the location of the error."""
    try:
        return Recording.model_validate(json.loads(path.read_bytes(), parse_constant=_reject_constant))
    except OSError as error:
        raise AnnotationError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        errors = field_errors(error, most=5) if isinstance(error, pydantic.ValidationError) else error
        raise AnnotationError(f"{path} is no recording of `darkroom annotate export`: {errors}") from error


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def write_recording(recording: Recording, path: Path) -> None:
    """Write the file atomically, one line per task, so that versions can be compared."""
    lines = [f"{json.dumps(name)}: {_lines(value)}" for name, value in recording.model_dump(mode="json").items()]
    write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n")


def _lines(value: object) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value, ensure_ascii=False)
    return "[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in value) + "\n]"


def record(
    journal: Journal, campaign: Campaign, pool: Sequence[PoolImage], *, note: str, annotators: Annotators = "people"
) -> Recording:
    """The campaign of a journal: all submissions for images of the pool, with made-up addresses."""
    accounts, terms = journal.people(), journal.terms()
    people = accounts.values()
    addresses = {person.email: _address(person) for person in people}
    images = {item.image.sha256 for item in pool}
    return Recording(
        note=note,
        annotators=annotators,
        campaign=campaign.model_copy(update={"images": (), "rates": {}, "practice": ""}),
        images=tuple(sorted(pool, key=lambda item: item.image.sha256)),
        people=tuple(Person(p.person_id, _address(p), f"Person {p.person_id}", p.role) for p in people),
        tasks=tuple(
            task
            for item_id, tasks in journal.record_tasks(ROUNDS)
            if item_id in images
            for task in _tasks(tasks, campaign.name, terms, accounts)
        ),
        hits=tuple({**entry, "person": addresses.get(entry["person"], "")} for entry in journal.blocked_submissions()),
    )


def _address(person: Person) -> str:
    return f"person{person.person_id}@example.org"


def _tasks(
    tasks: Sequence[RecordTask], campaign: str, terms: Mapping[str, Terms], accounts: Mapping[int, Person]
) -> Iterator[RecordedTask]:
    frozen = frozen_bases(tasks)
    for task in tasks:
        if task.task_id is None or task.project_id is None or not task.versions:
            continue
        used = [used_version(task, versions, frozen) for versions in task.annotations]
        latest = [versions[-1] for versions in task.annotations]
        yield RecordedTask(
            id=task.task_id,
            project=task.project_id,
            round=task.request.round,
            data={"key": task.request.key(campaign), "image": f"/darkroom/images/{task.request.item_id}"},
            annotations=tuple(map(_recorded, latest)),
            earlier=tuple(map(_recorded, used)) if used != latest else (),
            terms=terms.get(task.terms),
            roles={
                version.annotation_id: version.roles
                for version in used
                if version.roles is not None and version.roles != _role(accounts, version.raw.get("completed_by"))
            },
        )


def _role(accounts: Mapping[int, Person], person_id: object) -> tuple[str, ...]:
    person = accounts.get(person_id) if isinstance(person_id, int) else None
    return (person.role,) if person and person.role else ()


def _recorded(version: AnnotationVersion) -> RecordedAnnotation:
    return RecordedAnnotation.model_validate({name: version.raw[name] for name in _RECORDED if name in version.raw})
