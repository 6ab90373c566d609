"""A desk: a real journal, where tests put what people submitted, without a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.campaign import Terms
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.state_machine import StateMachine
from darkroom.annotation.rounds.submissions import ROUNDS, RecordState, SubmissionReader

ITEM = "a" * 64
SIZE = (4000, 3000)
ANN, BOB, CEM, EVE, FAY, ADMIN = 2, 3, 4, 5, 6, 1
GUS, HAL, IDA = 7, 8, 9
PEOPLE = [
    Person(ADMIN, "admin@example.com", "admin", "admin"),
    Person(ANN, "ann@example.com", "Ann", "annotator"),
    Person(BOB, "bob@example.com", "Bob", "annotator"),
    Person(CEM, "cem@example.com", "Cem", "annotator"),
    Person(EVE, "eve@example.com", "Eve", "expert"),
    Person(FAY, "fay@example.com", "Fay", "expert"),
]
PANEL = [
    Person(GUS, "gus@example.com", "Gus", "expert"),
    Person(HAL, "hal@example.com", "Hal", "expert"),
    Person(IDA, "ida@example.com", "Ida", "checker"),
]


class Desk:
    """One item's way through the rounds."""

    def __init__(
        self,
        folder: Path,
        *,
        max_rework: int = 2,
        item: str = ITEM,
        size: tuple[int, int] = SIZE,
        terms: Terms | None = None,
    ) -> None:
        """``terms``: of all tasks; None: as of a version before terms."""
        self.journal = Journal(folder)
        self.journal.set_people([*PEOPLE, *PANEL])
        self.terms = terms
        self._max_rework, self._item, self._size = max_rework, item, size
        self._tasks: dict[str, int] = {}
        self._annotation = 0
        self._raws: dict[int, list[dict[str, Any]]] = {}

    def state(self) -> RecordState:
        """Where the item stands now."""
        works = next((works for item, works in self.journal.record_tasks(ROUNDS) if item == self._item), [])
        reader = SubmissionReader(self.journal.terms(), Terms(0.05, self._max_rework))
        return StateMachine(self.journal.people()).state(self._item, reader.read(works, self._size))

    def hand_out(self) -> int:
        """Demands what is wanted, as a sync does; gives the task's number."""
        state = self.state()
        assert state.next_request is not None, f"nothing is wanted: {state}"
        demand = self.terms.asked(state.next_request) if self.terms else state.next_request
        [key] = self.journal.request([demand], terms={demand: self.terms} if self.terms else {})
        task_id = len(self._tasks) + 1
        self._tasks[key] = task_id
        self.journal.add_tasks(9, [(key, task_id)])
        seats = [self._raw(person, [], None) for person in state.excluded]
        self._enter(task_id, seats)
        return task_id

    def submit(self, task_id: int, person: int, result: Sequence[dict[str, Any]], **more: Any) -> int:
        """A person's annotation comes in; gives its number."""
        raw = self._raw(person, list(result), 12.5) | more
        self._enter(task_id, [raw])
        return int(raw["id"])

    def edit(self, task_id: int, annotation_id: int, **changed: Any) -> None:
        """A later state of an annotation comes in."""
        raw = next(one for one in self._raws[task_id] if one["id"] == annotation_id)
        raw.update(changed)
        self._enter(task_id, [])

    def delete(self, task_id: int, annotation_id: int) -> None:
        """An admin deletes an annotation on the server."""
        self._raws[task_id] = [one for one in self._raws[task_id] if one["id"] != annotation_id]
        self._enter(task_id, [])

    def _raw(self, person: int, result: list[dict[str, Any]], lead: float | None) -> dict[str, Any]:
        self._annotation += 1
        return {
            "id": self._annotation,
            "completed_by": person,
            "updated_by": None,
            "result": result,
            "was_cancelled": False,
            "lead_time": lead,
            "created_at": f"2026-05-01T10:{self._annotation:02d}:00Z",
        }

    def _enter(self, task_id: int, raws: list[dict[str, Any]]) -> None:
        self._raws.setdefault(task_id, []).extend(raws)
        with self.journal.transaction():
            self.journal.add_versions(task_id, self._raws[task_id])


def box(x: float = 10, y: float = 20, width: float = 4, height: float = 3, **more: Any) -> dict[str, Any]:
    """A box on an image of ``SIZE``; ``original_width=None`` leaves the frame out."""
    value = {"x": x, "y": y, "width": width, "height": height, "rotation": 0, "rectanglelabels": ["target"]}
    frame = {"original_width": SIZE[0], "original_height": SIZE[1], "image_rotation": 0}
    return {"from_name": "box", "type": "rectanglelabels", "value": value | more.pop("value", {}), **frame, **more}


def text(name: str, said: str) -> dict[str, Any]:
    return {"from_name": name, "type": "textarea", "value": {"text": [said]}}


def choice(name: str, *chosen: str) -> dict[str, Any]:
    return {"from_name": name, "type": "choices", "value": {"choices": list(chosen)}}


def number(name: str, found: Any) -> dict[str, Any]:
    return {"from_name": name, "type": "number", "value": {"number": found}}


def record(
    answer: str = "42", question: str = "What does the sign say?", category: str = "ocr"
) -> list[dict[str, Any]]:
    return [box(), choice("category", category), text("question", question), text("answer", answer)]


def accepts(blind: str = "42") -> list[dict[str, Any]]:
    return [text("blind_answer", blind), choice("verdict", "accept"), box()]


def rejects(*reasons: str, blind: str = "42") -> list[dict[str, Any]]:
    return [text("blind_answer", blind), choice("verdict", "reject"), choice("reason", *(reasons or ("ambiguous",)))]


def fixes(answer: str = "43") -> list[dict[str, Any]]:
    return [text("blind_answer", "43"), choice("verdict", "fix"), *record(answer)]
