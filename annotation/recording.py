"""A campaign as one file: what Label Studio holds of it, so that its tables can be made where no server runs.

    {"format": "darkroom annotations 1", "note": "…", "campaign": {"name": "streets", "max_share": 0.05, …},
     "images": [{"image": {"sha256": "…", "width": 4000, …}, "source": "ours", "source_row": "a.jpg", "license": "…"}],
     "people": [[7, "person7@example.org", "Person 7", "annotator"]],
     "tasks": [{"id": 31, "project": 2, "round": "cross_check", "data": {"key": "…", "image": "/darkroom/images/…"},
                "annotations": [{"id": 40, "completed_by": 7, "result": […], …}], "earlier": []}],
     "hits": [{"person": "person7@example.org", "task_id": 31, "problems": ["…"], "at": "…"}]}

Annotations are as Label Studio's API gives them, less what names people; accounts keep their numbers and get made-up
addresses. ``earlier`` holds a task's annotations as they were when the next round was handed out, where somebody
changed one after that. What people wrote into comments is theirs, and stays. No images are inside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pydantic

from annotation.campaign import Campaign
from annotation.faults import AnnotationFault
from annotation.journal import Journal, Person, Revision, Work
from annotation.rounds import ROUNDS
from pipelines.digest import digest
from pipelines.records import PoolImage
from pipelines.whole import write_whole

BUNDLED = Path(__file__).parent / "recorded" / "demo.json"
"""On images of the embedded source ``demo``; made by ``python -m scripts.record_annotations``."""
KEPT = ("id", "completed_by", "updated_by", "created_at", "updated_at", "lead_time", "was_cancelled", "result")
"""What of an annotation is recorded; the rest says nothing, or names people."""


class RecordedAnnotation(pydantic.BaseModel, extra="allow", frozen=True):
    """One annotation; whether it is sound is for those to say who read submissions."""

    id: int


class RecordedTask(pydantic.BaseModel, extra="forbid", frozen=True):
    """One task with its annotations."""

    id: int
    project: int
    round: str
    data: dict[str, Any]
    annotations: tuple[RecordedAnnotation, ...]
    earlier: tuple[RecordedAnnotation, ...] = ()

    @property
    def key(self) -> str:
        """The name of the demand that it is for."""
        return str(self.data.get("key", ""))

    @property
    def states(self) -> list[list[dict[str, Any]]]:
        """Its annotations as they came in, state after state; none where nobody worked on it."""
        states = [state for state in (self.earlier, self.annotations) if state]
        return [[one.model_dump() for one in state] for state in states]


class Recording(pydantic.BaseModel, extra="forbid", frozen=True):
    """The whole file."""

    format: Literal["darkroom annotations 1"] = "darkroom annotations 1"
    note: str = ""
    """How it came about, for whoever looks at its tables."""
    campaign: Campaign
    images: tuple[PoolImage, ...]
    people: tuple[Person, ...]
    tasks: tuple[RecordedTask, ...]
    hits: tuple[dict[str, Any], ...] = ()

    @property
    def digest(self) -> str:
        """Digest of all of it."""
        return digest(self.model_dump(mode="json"))


def read_recording(path: Path = BUNDLED) -> Recording:
    """The recording in a file. Raises ``AnnotationFault``, naming the place, for what is none."""
    try:
        found = json.loads(path.read_bytes(), parse_constant=_no_number)
        return Recording.model_validate(found)
    except OSError as fault:
        raise AnnotationFault(f"{path}: {fault.strerror or fault}") from fault
    except pydantic.ValidationError as fault:
        said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in fault.errors()[:5])
        raise AnnotationFault(f"{path} is no recording of `darkroom annotate record`: {said}") from fault
    except ValueError as fault:
        raise AnnotationFault(f"{path} is no recording of `darkroom annotate record`: {fault}") from fault


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def write_recording(recording: Recording, path: Path) -> None:
    """Writes the file whole, a line for each task, so that versions can be compared."""
    parts = recording.model_dump(mode="json")
    lines = [f"{json.dumps(name)}: {_lines(value)}" for name, value in parts.items()]
    write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n")


def _lines(value: object) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value, ensure_ascii=False)
    return "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in value) + "\n]"


def record(journal: Journal, campaign: Campaign, pool: Sequence[PoolImage], *, note: str = "") -> Recording:
    """The campaign as the journal has it: all that came in for images of the pool, without anybody's name."""
    addresses = {person.email: _address(person) for person in journal.people().values()}
    images = {item.image.sha256 for item in pool}
    return Recording(
        note=note,
        campaign=campaign.model_copy(update={"images": ()}),
        images=tuple(sorted(pool, key=lambda item: item.image.sha256)),
        people=tuple(
            Person(one.person_id, _address(one), f"Person {one.person_id}", one.role)
            for one in journal.people().values()
        ),
        tasks=tuple(
            task
            for item_id, works in journal.works(ROUNDS)
            if item_id in images
            for task in _tasks(works, campaign.name)
        ),
        hits=tuple({**hit, "person": addresses.get(hit["person"], "")} for hit in journal.hits()),
    )


def _address(person: Person) -> str:
    return f"person{person.person_id}@example.org"


def _tasks(works: Sequence[Work], campaign: str) -> list[RecordedTask]:
    frozen = {work.demand.base_annotation: work.demand.base_revision for work in works}
    return [
        _task(work, campaign, frozen)
        for work in works
        if work.task_id is not None and work.project_id is not None and work.revisions
    ]


def _task(work: Work, campaign: str, frozen: Mapping[int, str]) -> RecordedTask:
    then = [_counted(states, frozen, is_gold=bool(work.demand.gold)) for states in work.annotations]
    now = [states[-1] for states in work.annotations]
    return RecordedTask(
        id=work.task_id or 0,
        project=work.project_id or 0,
        round=work.demand.round,
        data={"key": work.demand.key(campaign), "image": f"/darkroom/images/{work.demand.item_id}"},
        annotations=tuple(map(_recorded, now)),
        earlier=tuple(map(_recorded, then)) if then != now else (),
    )


def _counted(states: Sequence[Revision], frozen: Mapping[int, str], *, is_gold: bool) -> Revision:
    """The state that counts: of a planted error the first, else the one that the next round was built on."""
    if is_gold:
        return states[0]
    wanted = frozen.get(states[0].annotation_id)
    return next((one for one in states if one.digest == wanted), states[-1])


def _recorded(revision: Revision) -> RecordedAnnotation:
    return RecordedAnnotation.model_validate({name: revision.raw[name] for name in KEPT if name in revision.raw})
