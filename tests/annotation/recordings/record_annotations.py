"""Records the bundled campaign: simulated annotators work on the demo's images in a real Label Studio.

python -m tests.annotation.recordings.record_annotations annotation/recordings/demo.json

Their submissions are true of the images (``demo_facts.py``), except for the mistakes in ``PLAN``, which a later round
finds. Installs Label Studio's environment if it is missing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
import yaml

from darkroom.annotation.label_studio.client import LabelStudioClient
from darkroom.annotation.label_studio.server import connect, server_of
from darkroom.annotation.recordings.format import BUNDLED, record, write_recording
from darkroom.annotation.rounds.campaign import Campaign, Terms
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.next_tasks import results
from darkroom.annotation.rounds.planted_errors import plant
from darkroom.annotation.rounds.submissions import RecordFields, read_submission
from darkroom.annotation.rounds.sync import Sync
from darkroom.annotation.rounds.tables import AnnotationStages
from darkroom.pipelines.records import ImageRef, PoolImage
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.storage.workspace import Workspace
from tests.annotation.recordings.demo_facts import facts
from tests.e2e.annotators import choice, settled, text
from tests.own_studio import own_home, running

CAMPAIGN = {"name": "demo", "min_side": 500, "gold_share": 0.1}
NOTE = (
    "Questions about the demo's images, written and checked by simulated people on Label Studio 1.23.2 "
    "(tests/annotation/recordings/record_annotations.py): true of the images, but nobody was asked."
)
PLAN = {
    2: "twice",  # handed in twice: the second is refused
    3: "wrong",  # a wrong answer, which the checker fixes
    5: "loose",  # a box beside the thing, which the checker fixes
    9: "vague",  # a question that could mean anything: the expert rejects it, it is written anew
    12: "wrong",
    14: "large",  # a box over 5 %, refused on the page, drawn again
    16: "skipped",  # by the first person
    18: "late",  # changed by its author after the check had begun: the change is refused
    20: "wrong",
    22: "vague",
    28: "easy",  # too easy: rejected by every checker, given up
}
"""What happens to which image; all others are written, checked and accepted."""
VAGUE = "What is it?"
ROUNDS = {"annotator": ("annotate", "rework", "cross_check"), "expert": ("accept",)}


@dataclass
class Desk:
    """What all simulated people share: the true records by the image's sha256, in the order of ``PLAN``."""

    items: list[PoolImage]
    truths: dict[str, RecordFields]
    events: set[tuple[int, str]] = field(default_factory=set)
    late: dict[int, tuple[httpx.Client, int]] = field(default_factory=dict)
    """By image: the client and annotation of an author who edits it later."""

    def number(self, task: Mapping[str, Any]) -> int:
        sha256 = task["data"]["image"].rpartition("/")[2]
        return next(number for number, item in enumerate(self.items) if item.image.sha256 == sha256)

    def is_first(self, number: int, event: str) -> bool:
        """Whether the event is the image's first of its kind."""
        is_first = (number, event) not in self.events
        self.events.add((number, event))
        return is_first


def main(out: Annotated[Path, typer.Argument(help="The file to write.")] = BUNDLED) -> None:
    """Plays the campaign and records it."""
    with tempfile.TemporaryDirectory() as home, Workspace.from_environment(own_home(Path(home))) as workspace:
        desk = _prepare(workspace)
        with (
            running(server_of(workspace)),
            connect(workspace, {}) as studio,
            Journal(workspace.annotation) as journal,
        ):
            _play(workspace, studio, journal, desk)
            campaign = Campaign.load(workspace.annotation)
            write_recording(record(journal, campaign, desk.items, note=NOTE, annotators="simulated people"), out)
    print(out)


def _prepare(workspace: Workspace) -> Desk:
    """Writes the pool and the campaign's rules."""
    items, truths = [], {}
    for row, fields in facts():
        (data,) = row.images
        assert isinstance(data, bytes), f"{row.row} has an image"
        image = workspace.images.ingest(data)
        items.append(PoolImage(image, "demo", row.row, row.license))
        truths[image.sha256] = fields
    counts = {"n_in": len(items), "n_out": len(items), "n_rejected": 0, "n_quarantined": 0, "n_retryable": 0}
    workspace.tables.write(POOL, PoolImage, items, [], inputs="demo", facts={**counts, "reasons": {}, "usage": {}})
    workspace.annotation.mkdir(parents=True)
    (workspace.annotation / "campaign.yaml").write_text(yaml.safe_dump(CAMPAIGN))
    return Desk(items, truths)


def _play(workspace: Workspace, studio: LabelStudioClient, journal: Journal, desk: Desk) -> None:
    """Everybody works in turn until no record waits."""
    team = {f"annotator{number}@example.org": "annotator" for number in range(1, 6)}
    team |= {f"expert{number}@example.org": "expert" for number in range(1, 3)}
    people = [_Person(studio, email, role, desk) for email, role in team.items()]
    campaign = Campaign.load(workspace.annotation)
    stages = AnnotationStages(workspace, campaign, journal, lambda project, task: "")
    while True:
        Sync(journal, studio, campaign).run(desk.items)
        _change_late(journal, desk)
        projects = {
            round: project.project_id
            for rounds in ROUNDS.values()
            for round in rounds
            if (project := journal.project(round))
        }
        n_done = sum(person.work(projects) for person in people)
        states = [record.state for record in stages.read().records]
        print({stage: sum(state.stage == stage for state in states) for stage in ("waiting", "accepted", "rejected")})
        if not n_done and not any(state.stage == "waiting" for state in states):
            return


def _change_late(journal: Journal, desk: Desk) -> None:
    """Authors edit records whose check has begun."""
    for number in list(desk.late):
        client, annotation_id = desk.late.pop(number)
        item = desk.items[number]
        changed = replace(desk.truths[item.image.sha256], question=VAGUE)
        response = client.patch(f"/api/annotations/{annotation_id}/", json={"result": results(changed, item)})
        assert response.status_code in (200, 403), response.text[:300]


class _Person:
    """One simulated person, logged in."""

    def __init__(self, studio: LabelStudioClient, email: str, role: str, desk: Desk) -> None:
        token = studio.add_person(email, role=role, password="a secret of the recording")["token"]
        headers = {"Authorization": f"Token {token}"}
        self._client = httpx.Client(base_url=studio.url, headers=headers, timeout=120, trust_env=False)
        self._role, self._desk = role, desk

    def work(self, projects: Mapping[str, int]) -> int:
        """At most four tasks, so that everybody gets some; returns their number."""
        n_done = 0
        for round in ROUNDS[self._role]:
            while n_done < 4 and round in projects and self._work_on_next(round, projects[round]):
                n_done += 1
        return n_done

    def _work_on_next(self, round: str, project: int) -> bool:
        answer = self._client.post("/api/dm/actions", params={"id": "next_task", "project": project}, json={})
        if answer.status_code == 404:
            return False
        task = answer.json()
        number = self._desk.number(task)
        path, plan = f"/api/tasks/{task['id']}/annotations/", PLAN.get(number, "")
        seconds = {"annotate": 70.0, "rework": 50.0, "cross_check": 30.0, "accept": 15.0}[round] + 7 * number % 40
        if round == "annotate" and plan == "skipped" and self._desk.is_first(number, "skipped"):
            self._submit(path, {"result": [], "was_cancelled": True, "lead_time": 4.0})
            return True
        if round == "annotate" and plan == "large":
            large = self._written(number, round, boxes=(Box(0, 0, 1200, 900),))
            refused = self._client.post(path, json={"result": large, "lead_time": seconds})
            assert refused.status_code == 403, refused.text[:300]
        if round == "cross_check":
            task = settled(self._client, task, self._desk.truths[self._desk.items[number].image.sha256].answer)
        checks = round in ("cross_check", "accept")
        result = self._checked(task, number, round) if checks else self._written(number, round)
        annotation_id = self._submit(path, {"result": result, "lead_time": seconds})
        if round == "annotate" and plan == "twice":
            self._submit(path, {"result": result, "lead_time": seconds + 3})
        if round == "annotate" and plan == "late":
            self._desk.late[number] = (self._client, annotation_id)
        return True

    def _submit(self, path: str, body: Mapping[str, Any]) -> int:
        response = self._client.post(path, json=body)
        assert response.status_code == 201, response.text[:300]
        return int(response.json()["id"])

    def _written(self, number: int, round: str, **changed: Any) -> list[dict[str, Any]]:
        item, plan = self._desk.items[number], PLAN.get(number, "")
        fields = replace(self._desk.truths[item.image.sha256], **changed)
        size = (item.image.width, item.image.height)
        if plan == "wrong":
            planted = plant(fields, size, seed=number, errors=("wrong_answer", "wrong_count", "wrong_category"))
            fields = planted.fields if planted else fields
        if plan == "loose":
            planted = plant(fields, size, seed=number, errors=("moved_box",))
            fields = planted.fields if planted else fields
        if plan == "vague" and round == "annotate":
            fields = replace(fields, question=VAGUE)
        return results(fields, item)

    def _checked(self, task: Mapping[str, Any], number: int, round: str) -> list[dict[str, Any]]:
        item, plan = self._desk.items[number], PLAN.get(number, "")
        truth, record = self._desk.truths[item.image.sha256], _prefilled(task, item.image)
        own_answer = [text("blind_answer", truth.answer)] if round == "cross_check" else []
        if plan == "easy":
            easy = text("comment", "It is the first thing that anybody sees.")
            return [*own_answer, choice("verdict", "reject"), choice("reason", "too_easy"), easy]
        if round == "accept" and record.question == VAGUE:
            return [choice("verdict", "reject"), choice("reason", "ambiguous")]
        is_right = replace(record, question="", boxes=()) == replace(truth, question="", boxes=())
        if is_right and set(record.boxes) == set(truth.boxes):
            boxes = [entry for entry in results(record, item) if entry["from_name"] == "box"]
            return [*own_answer, choice("verdict", "accept"), *boxes]
        return [*own_answer, choice("verdict", "fix"), *results(replace(truth, question=record.question), item)]


def _prefilled(task: Mapping[str, Any], image: ImageRef) -> RecordFields:
    """The record in the task's prediction."""
    raw = {"id": 0, "completed_by": 0, "result": task["predictions"][0]["result"]}
    return read_submission(raw, Terms(1.0, 2).gate("annotate", (image.width, image.height))).fields


if __name__ == "__main__":
    typer.run(main)
