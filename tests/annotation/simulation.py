"""A campaign played out: people with habits work through a queue, and the real rules (``rounds.Walk``) read their work.

Annotations are dicts as Label Studio gives them. Everybody works ninety minutes a day, each at their own pace (seconds
of one record; a check takes less); some are careless, one waves everything through, one hands in twice, one signs for
somebody else.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from darkroom.annotation.label_studio.forms import REASONS, names
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.campaign import CATEGORY_NAMES, Terms, is_selected
from darkroom.annotation.rounds.journal_file import AnnotationVersion, RecordTask, TaskRequest
from darkroom.annotation.rounds.next_tasks import to_percent
from darkroom.annotation.rounds.planted_errors import PlantedRecord, plant
from darkroom.annotation.rounds.state_machine import StateMachine
from darkroom.annotation.rounds.submissions import ROLE, RecordFields, RecordState, SubmissionReader
from darkroom.pipelines.records.geometry import Box

SIZE = (4032, 3024)
START = datetime(2026, 3, 2, 9, tzinfo=UTC)
SHIFT = timedelta(minutes=90)
PROJECTS = {"annotate": 1, "cross_check": 2, "accept": 3, "rework": 4}
ANSWERS = {
    "ocr": ("EXIT 27", "No Parking", "LKW 7,5 t", "Bäckerei Kern", "B 4471 XR"),
    "attribute": ("red", "striped", "dark green", "wooden"),
    "location": ("left of the door", "on the upper shelf", "behind the bus"),
    "object": ("a bicycle pump", "a heron", "a fire hydrant", "an umbrella"),
    "chart": ("42", "2019", "13.5"),
}


class Habits(NamedTuple):
    """How somebody works: seconds per task, and how often something is wrong."""

    pace: float
    errors: float = 0.08
    overlooks: float = 0.15
    skips: float = 0.01
    hits: float = 0.03
    signs_for_others: float = 0.0
    submits_twice: float = 0.0


@dataclass
class Campaign:
    """What came of it: the states, what the gate refused, and the accounts."""

    states: list[RecordState]
    hits: list[dict[str, Any]]
    people: list[Person]


@dataclass
class Item:
    item_id: str
    truth: RecordFields
    is_hopeless: bool
    """No question about it is clear: who looks closely rejects every record of it."""
    works: list[RecordTask] = field(default_factory=list)
    ready: datetime = START
    state: RecordState | None = None
    said: RecordFields | None = None
    """What the record says after the last submission."""


TEAM: Mapping[str, Habits] = {
    "amara": Habits(300, 0.02, 0.04),
    "bruno": Habits(420),
    "chiara": Habits(340, 0.05),
    "dmitri": Habits(520, 0.12, hits=0.12),
    "elif": Habits(380),
    "farid": Habits(240, 0.45, 0.3, hits=0.15),
    "greta": Habits(480, 0.04, 0.08),
    "hana": Habits(400, submits_twice=0.1),
    "ivo": Habits(360, 0.10, skips=0.12),
    "jonas": Habits(110, 0.15, 0.95),
    "kaya": Habits(440, 0.06),
    "liam": Habits(410, signs_for_others=0.06),
    "maren (expert)": Habits(160, 0.0, 0.03),
    "noor (expert)": Habits(190, 0.0, 0.05),
    "oskar (expert)": Habits(140, 0.0, 0.10),
}


def simulate(*, n_items: int = 300, n_days: int = 3, seed: int = 1, team: Mapping[str, Habits] = TEAM) -> Campaign:
    """A campaign of ``n_items`` after ``n_days`` of work."""
    return _Play(n_items, n_days, seed, team).run()


class _Play:
    def __init__(self, n_items: int, n_days: int, seed: int, team: Mapping[str, Habits]) -> None:
        self.random = Random(seed)
        self.people = {
            number: Person(number, f"{name.split()[0]}@example.org", name.split()[0].capitalize(), _role(name))
            for number, name in enumerate(team, 2)
        }
        admin = Person(1, "admin@example.org", "Darkroom", "admin")
        self.reader, self.machine = SubmissionReader({}, Terms(0.05, 2)), StateMachine({1: admin, **self.people})
        self.habits = dict(zip(self.people, team.values(), strict=True))
        self.items = [
            Item(f"{self.random.getrandbits(256):064x}", _record(self.random), self.random.random() < 0.03)
            for _ in range(n_items)
        ]
        self.end = START + timedelta(days=n_days - 1) + SHIFT
        self.hits: list[dict[str, Any]] = []
        self.n_annotations = 0
        self.planted_checks: dict[int, list[tuple[Item, RecordTask]]] = {number: [] for number in self.people}
        for item in self.items:
            self.follow(item, START)

    def run(self) -> Campaign:
        clocks = [(START, number) for number in self.people]
        while clocks:
            now, number = heapq.heappop(clocks)
            if now - now.replace(hour=9, minute=0, second=0, microsecond=0) >= SHIFT:
                now = now.replace(hour=9, minute=0, second=0, microsecond=0) + timedelta(days=1)
            if now < self.end:
                heapq.heappush(clocks, (self.act(number, now), number))
        return Campaign([self.follow(item, self.end) for item in self.items], self.hits, list(self.people.values()))

    def act(self, number: int, now: datetime) -> datetime:
        """Does the next thing that waits for this person; returns when they are free again."""
        habits = self.habits[number]
        if self.planted_checks[number]:
            item, work = self.planted_checks[number].pop()
            seconds = habits.pace * 0.4
            self.submit(work, number, now, seconds, self.judged(work, item, habits, is_wrong=True))
            return self.after(item, now + timedelta(seconds=seconds))
        item = next((one for one in self.items if self.may_do(one, self.people[number], now)), None)
        if item is None:
            return now + timedelta(minutes=40)
        work = item.works[-1]
        seconds = habits.pace * (0.45 if work.request.round == "cross_check" else 1) * self.random.uniform(0.6, 1.6)
        is_skipped = self.random.random() < habits.skips
        result = [] if is_skipped else self.work(item, work, number, now)
        self.submit(work, number, now, seconds, result, was_cancelled=is_skipped)
        if self.random.random() < habits.submits_twice:
            self.submit(work, number, now, seconds + 4, result)
        return self.after(item, now + timedelta(seconds=seconds))

    def work(self, item: Item, work: RecordTask, number: int, now: datetime) -> list[dict[str, Any]]:
        """What somebody hands in."""
        habits = self.habits[number]
        if work.request.round in ("cross_check", "accept"):
            is_wrong = item.said != item.truth or item.is_hopeless
            return self.judged(work, item, habits, is_wrong=is_wrong)
        if self.random.random() < habits.hits:
            self.hit(work, self.people[number], now)
        item.said = _spoiled(item.truth, self.random) if self.random.random() < habits.errors else item.truth
        return results(item.said, SIZE)

    def after(self, item: Item, done: datetime) -> datetime:
        self.follow(item, done)
        return done + timedelta(seconds=self.random.uniform(5, 40))

    def may_do(self, item: Item, person: Person, now: datetime) -> bool:
        state = item.state
        assert state is not None
        return (
            state.stage == "waiting"
            and item.ready <= now
            and ROLE[state.round] == person.role
            and person.person_id not in state.excluded
            and person.email not in state.skipped_by
        )

    def judged(self, work: RecordTask, item: Item, habits: Habits, *, is_wrong: bool) -> list[dict[str, Any]]:
        """A check: who sees the error fixes or rejects; who overlooks it copies the record's answer."""
        sees = is_wrong and self.random.random() >= habits.overlooks
        found: list[dict[str, Any]] = []
        if work.request.round == "cross_check":
            shown = item.truth if sees or work.request.planted_error or not item.said else item.said
            blind = shown.answer if self.random.random() > 0.06 else "cannot tell"
            found.append(_text("blind_answer", blind))
        if not sees:
            nudged = self.random.random() < 0.05 and not work.request.planted_error and item.said is not None
            if nudged:
                item.said = replace(item.said, boxes=tuple(_nudged(box, self.random) for box in item.said.boxes))
                return [*found, _choice("verdict", "fix"), *results(item.said, SIZE)]
            return [*found, _choice("verdict", "accept")]
        if self.random.random() < 0.5 and not item.is_hopeless:
            if not work.request.planted_error:
                item.said = item.truth
            return [*found, _choice("verdict", "fix"), *results(item.truth, SIZE)]
        return [*found, _choice("verdict", "reject"), _choice("reason", self.reason(item))]

    def reason(self, item: Item) -> str:
        assert item.said is not None
        if item.is_hopeless:
            return "ambiguous"
        if item.said.answer != item.truth.answer:
            return "wrong_answer"
        if item.said.boxes != item.truth.boxes:
            return "bad_box"
        return self.random.choice(names(REASONS))

    def submit(
        self,
        work: RecordTask,
        number: int,
        begun: datetime,
        seconds: float,
        result: list[dict[str, Any]],
        *,
        was_cancelled: bool = False,
    ) -> None:
        habits = self.habits[number]
        self.n_annotations += 1
        forged = self.random.random() < habits.signs_for_others
        raw = {
            "id": self.n_annotations,
            "completed_by": 2 if forged else number,
            "updated_by": number,
            "created_at": (begun + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z"),
            "lead_time": round(seconds, 1),
            "was_cancelled": was_cancelled,
            "result": result,
        }
        revision = AnnotationVersion(
            self.n_annotations, self.n_annotations, str(self.n_annotations), work.task_id or 0, raw
        )
        work.versions.append(revision)

    def hit(self, work: RecordTask, person: Person, at: datetime) -> None:
        box = f"Box 1 covers {self.random.uniform(5.1, 30):.2f} % of the image; the limit is 5 %."
        problem = self.random.choice([box, box, "Draw at least one box around the target object."])
        self.hits.append({"person": person.email, "task_id": work.task_id, "problems": [problem], "at": at.isoformat()})

    def follow(self, item: Item, at: datetime) -> RecordState:
        """The state, with the demand that it wants and, for some, a gold check for somebody who is no author."""
        item.state = self.machine.state(item.item_id, self.reader.read(item.works, SIZE))
        wanted = item.state.next_request
        if wanted is not None:
            item.works.append(_work(wanted, len(self.items)))
            item.ready = at + timedelta(minutes=5)
            if (
                wanted.round == "cross_check"
                and wanted[2:4] == (0, 0)
                and is_selected(0.2, "gold", "test", item.item_id)
            ):
                self.add_gold(item, wanted)
            item.state = self.machine.state(item.item_id, self.reader.read(item.works, SIZE))
        return item.state

    def add_gold(self, item: Item, wanted: TaskRequest) -> None:
        planted = _planted(item.truth, item.item_id)
        others = [p for p in self.people.values() if p.role == "annotator" and p.person_id not in item.state.excluded]
        if others:
            work = _work(wanted._replace(planted_error=planted.kind), len(self.items))
            item.works.insert(-1, work)
            self.planted_checks[self.random.choice(others).person_id].append((item, work))


def _work(demand: TaskRequest, salt: int) -> RecordTask:
    return RecordTask(demand, int(demand.key(str(salt))[:6], 16), PROJECTS[demand.round])


def _role(name: str) -> str:
    return "expert" if name.endswith("(expert)") else "annotator"


def _record(random: Random) -> RecordFields:
    category = random.choices(CATEGORY_NAMES, (30, 22, 14, 12, 16, 6))[0]
    n_boxes = random.randint(1, 5) if category == "quantity" else 1
    boxes = []
    for _ in range(n_boxes):
        width, height = random.randint(40, 420), random.randint(40, 320)
        x, y = random.randint(0, SIZE[0] - width), random.randint(0, SIZE[1] - height)
        boxes.append(Box(x, y, x + width, y + height))
    if category == "quantity":
        return RecordFields("How many are there?", str(n_boxes), category, n_boxes, tuple(boxes))
    return RecordFields("What is it?", random.choice(ANSWERS[category]), category, None, tuple(boxes))


def _spoiled(truth: RecordFields, random: Random) -> RecordFields:
    if random.random() < 0.4:
        return replace(truth, boxes=tuple(_nudged(box, random) for box in truth.boxes))
    return _planted(truth, random.random().hex()).fields


def _planted(truth: RecordFields, seed: str) -> PlantedRecord:
    """An error in any record: where none can be planted, another answer."""
    other = next(answer for answer in ANSWERS["attribute"] if answer != truth.answer)
    return plant(truth, SIZE, seed=seed) or PlantedRecord("wrong_answer", replace(truth, answer=other))


def _nudged(box: Box, random: Random) -> Box:
    x, y = (round(side * random.uniform(-0.3, 0.3)) for side in (box.width, box.height))
    moved = Box(box.x1 + x, box.y1 + y, box.x2 + x, box.y2 + y)
    return moved if moved.fits(*SIZE) else box


def results(fields: RecordFields, size: tuple[int, int]) -> list[dict[str, Any]]:
    """What a form with a record in it hands in."""
    found = [
        {
            "from_name": "box",
            "original_width": size[0],
            "original_height": size[1],
            "value": to_percent(box, *size) | {"rectanglelabels": ["target"]},
        }
        for box in fields.boxes
    ]
    found += [_text("question", fields.question), _text("answer", fields.answer), _choice("category", fields.category)]
    if fields.count is not None:
        found.append({"from_name": "count", "value": {"number": fields.count}})
    return found


def raw_record(fields: RecordFields, size: tuple[int, int]) -> dict[str, Any]:
    """An annotation that holds a record."""
    return {"id": 1, "completed_by": 2, "updated_by": 2, "created_at": "", "result": results(fields, size)}


def _text(name: str, text: str) -> dict[str, Any]:
    return {"from_name": name, "value": {"text": [text]}}


def _choice(name: str, choice: str) -> dict[str, Any]:
    return {"from_name": name, "value": {"choices": [choice]}}
