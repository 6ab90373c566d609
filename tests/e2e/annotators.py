"""Simulated people: each logs on with a token of their own and works through the HTTP API until told to go home.

What becomes of an image is decided by its number, not by who gets it, so that a campaign ends the same way whoever was
faster. See ``PLAN``.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

Plan = Literal[
    "right", "wrong", "lazy", "empty", "hopeless", "expert_rejects", "expert_fixes", "skipped", "edited_late"
]
PERIOD = 60
"""Of the plan, by the images' numbers."""
PLAN: Mapping[int, Plan] = {
    3: "wrong",  # the checker finds another answer and fixes it
    13: "wrong",
    23: "wrong",
    5: "lazy",  # a box over 5 %, refused at submission; drawn again properly
    15: "lazy",
    25: "lazy",
    7: "hopeless",  # rejected by every checker: given up after two reworks
    17: "hopeless",
    9: "expert_rejects",  # the first time; the rework is accepted
    19: "expert_rejects",
    11: "expert_fixes",  # another category
    21: "expert_fixes",
    27: "skipped",  # the first person skips it, another one does it
    29: "empty",  # refused at submission; filled in then
    31: "edited_late",  # by its author, when an expert has it already: refused
}
LARGE, SMALL = (30.0, 30.0), (4.0, 3.0)


def plan_of(number: int) -> Plan:
    return PLAN.get(number % PERIOD, "right")


def answer_of(number: int) -> str:
    return f"No. {number:03d}"


def question_of(attempt: int) -> str:
    return "What does the small white sign say?" if attempt == 0 else f"Which number is on the sign ({attempt})?"


@dataclass
class Room:
    """Where everybody works: the server, the rounds' projects as they appear, and which image is which number."""

    url: str
    numbers: Mapping[str, int]
    projects: dict[str, int] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    """Projects that an admin deletes while people work in them."""
    deleted_tasks: set[int] = field(default_factory=set)
    sizes: tuple[int, int] = (0, 0)
    go_home: threading.Event = field(default_factory=threading.Event)
    tallies: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    errors: list[str] = field(default_factory=list)
    saved: list[tuple[int, int]] = field(default_factory=list)
    """What the server said it has saved: task and annotation."""
    written: dict[int, list[tuple[Mapping[str, str], int]]] = field(default_factory=dict)
    """By image: its authors' headers, and the task; the server hands a task to two people now and then."""

    def save(self, task_id: int, answer: httpx.Response) -> None:
        self.saved.append((task_id, answer.json()["id"]))

    def count(self, what: str) -> None:
        with self.lock:
            self.tallies[what] += 1


NO_IDLE_CONNECTION = httpx.Limits(max_keepalive_connections=0)
"""The server closes those after two seconds, perhaps in the very moment in which a request goes out on one."""


def http_client(url: str, token: str = "") -> httpx.Client:
    """For whom the token is, or nobody."""
    headers = {"Authorization": f"Token {token}"} if token else {}
    return httpx.Client(base_url=url, headers=headers, timeout=300, limits=NO_IDLE_CONNECTION, trust_env=False)


class PatientClient(httpx.Client):
    """As people are when the server is down or the line is cut: they try the same thing again."""

    def __init__(self, room: Room, *, leaves: bool, **options: Any) -> None:
        super().__init__(base_url=room.url, **options)
        self._room, self._leaves = room, leaves

    def request(self, method: str, url: Any, **options: Any) -> httpx.Response:
        while True:
            try:
                answer = super().request(method, url, **options)
            except httpx.TransportError:
                self._room.count("cut off")
            else:
                if answer.status_code == 401 and self._leaves:
                    raise GoneHome
                if answer.status_code < 500:
                    return answer
                self._room.count("failures of the server")
            if self._room.go_home.wait(0.5):
                raise GoneHome


class GoneHome(Exception):
    """The room was closed while a person waited for the server, or they were removed."""


@dataclass
class Person:
    """One simulated person."""

    room: Room
    email: str
    token: str
    role: str
    duplicates: bool = False
    """Submits everything twice."""
    tampers: bool = False
    """Tries what only an admin may do, and signs for others."""
    leaves: bool = False
    """Is removed in the middle of a round."""

    def work(self) -> None:
        """Until the room closes."""
        rounds = ("accept",) if self.role == "expert" else ("annotate", "rework", "cross_check")
        headers = {"Authorization": f"Token {self.token}"}
        limits = httpx.Limits(keepalive_expiry=1.0)  # gunicorn closes idle connections after two seconds
        options: dict[str, Any] = {"headers": headers, "timeout": 300, "limits": limits, "trust_env": False}
        with PatientClient(self.room, leaves=self.leaves, **options) as client:
            try:
                while not self.room.go_home.is_set():
                    if not any(self._one(client, round) for round in rounds):
                        self.room.go_home.wait(1.0)
            except GoneHome:
                return
            except Exception as error:  # the test looks at what happened in threads
                self.room.errors.append(f"{self.email}: {type(error).__name__}: {error}")

    def _one(self, client: httpx.Client, round: str) -> bool:
        project = self.room.projects.get(round)
        if project is None:
            return False
        answer = client.post("/api/dm/actions", params={"id": "next_task", "project": project}, json={})
        if answer.status_code == 404 or project in self.room.deleted:
            return False
        assert answer.status_code == 200, (round, answer.status_code, answer.text[:200])
        task = answer.json()
        number = self.room.numbers[task["data"]["image"].rpartition("/")[2]]
        if round == "cross_check":
            assert not any(one["completed_by"] != task.get("me") for one in task["annotations"]), "sees the author"
        if self.tampers and self.room.tallies["tampering"] < 5:
            self._tamper(client, project, task["id"])
        try:
            if round == "cross_check":
                task = settled(client, task, answer_of(number).lower())
            self._submit(client, round, task, number)
        except AssertionError:
            if project not in self.room.deleted:
                raise
        return True

    def _submit(self, client: httpx.Client, round: str, task: Mapping[str, Any], number: int) -> None:
        path = f"/api/tasks/{task['id']}/annotations/"
        if plan_of(number) == "skipped" and round == "annotate" and self._is_first_to_skip(number):
            said = client.post(path, json={"result": [], "was_cancelled": True, "lead_time": 1.0})
            assert said.status_code == 201, said.text[:200]
            self.room.save(task["id"], said)
            return
        if plan_of(number) == "empty" and round == "annotate":
            refused = client.post(path, json={"result": [], "lead_time": 2.0})
            assert refused.status_code == 403, refused.text[:200]
            self.room.count("refused submissions")
        if plan_of(number) == "lazy" and round == "annotate":
            refused = client.post(path, json={"result": self._record(number, 0, share=LARGE), "lead_time": 2.0})
            assert refused.status_code == 403, refused.text[:200]
            assert "the limit is 5 %" in refused.text
            self.room.count("refused submissions")
        body = {"result": self._result(round, task, number), "lead_time": 10.0 + number}
        for _ in range(2 if self.duplicates else 1):
            said = client.post(path, json=body)
            assert said.status_code == 201, (round, said.status_code, said.text[:300])
            self.room.save(task["id"], said)
        if plan_of(number) == "edited_late":
            self._edit_late(client, round, task["id"], number)
        self.room.count(round)
        if self.duplicates:
            self.room.count("duplicates")

    def _edit_late(self, client: httpx.Client, round: str, task_id: int, number: int) -> None:
        """Who wrote the record changes the answer when an expert has accepted it, wherever it was handed in.

        One submission counts, whichever the server stored first: people submit twice, on purpose or where the line was
        cut.
        """
        if round == "annotate":
            self.room.written.setdefault(number, []).append((dict(client.headers), task_id))
        if round == "accept":
            edited, n_refused = {"result": self._record(number, 0, wrong=True), "lead_time": 99.0}, 0
            for headers, written_task in self.room.written[number]:
                said = client.get(f"/api/tasks/{written_task}/", headers=headers)
                if said.status_code == 401:  # the author has left
                    continue
                assert said.status_code == 200, said.text[:200]
                for one in said.json()["annotations"]:
                    said = client.patch(f"/api/annotations/{one['id']}/", json=edited, headers=headers)
                    assert said.status_code in (200, 403), said.text[:200]  # 200: nothing builds on a second submission
                    n_refused += said.status_code == 403
            if n_refused:
                self.room.count("late edits")

    def _is_first_to_skip(self, number: int) -> bool:
        with self.room.lock:
            self.room.tallies[f"skip {number}"] += 1
            return self.room.tallies[f"skip {number}"] == 1

    def _tamper(self, client: httpx.Client, project: int, task_id: int) -> None:
        spoofed = {"result": self._record(0, 0), "completed_by": 1}
        attempts = [
            client.post(f"/api/tasks/{task_id}/annotations/", json=spoofed),
            client.delete(f"/api/projects/{project}/"),
            client.get(f"/api/projects/{project}/export"),
            client.post(f"/api/projects/{project}/import", json=[{"data": {"image": "x"}}]),
            client.post("/api/dm/actions", params={"id": "delete_tasks", "project": project}, json={}),
            client.get("/darkroom/people"),
        ]
        assert [said.status_code for said in attempts] == [403] * len(attempts), [said.text[:80] for said in attempts]
        self.room.count("tampering")

    def _result(self, round: str, task: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
        plan = plan_of(number)
        if round in ("annotate", "rework"):
            attempt = int("Which" in str(task.get("predictions"))) if round == "annotate" else self._attempt(task)
            return self._record(number, attempt, wrong=plan == "wrong")
        if round == "cross_check":
            return self._check(task, number, plan)
        rejects = plan == "expert_rejects" and "Which number" not in task["data"]["question_shown"]
        if rejects:
            return [choice("verdict", "reject"), choice("reason", "ambiguous")]
        if plan == "expert_fixes":
            return [choice("verdict", "fix"), *self._record(number, 0, category="object")]
        return [choice("verdict", "accept"), *boxes(self.room.sizes, SMALL)]

    def _check(self, task: Mapping[str, Any], number: int, plan: Plan) -> list[dict[str, Any]]:
        blind = text("blind_answer", answer_of(number).lower())
        if plan == "hopeless":
            return [blind, choice("verdict", "reject"), choice("reason", "too_easy"), text("comment", "look again")]
        shown = task["data"]["record_shown"].replace("\\", "")
        if answer_of(number) in shown:
            return [blind, choice("verdict", "accept"), *boxes(self.room.sizes, SMALL)]
        return [blind, choice("verdict", "fix"), *self._record(number, 0)]

    @staticmethod
    def _attempt(task: Mapping[str, Any]) -> int:
        """How often the record has come back: the question says which version it is."""
        return 2 if "(1)" in str(task["predictions"]) else 1

    def _record(
        self,
        number: int,
        attempt: int,
        *,
        wrong: bool = False,
        share: tuple[float, float] = SMALL,
        category: str = "ocr",
    ) -> list[dict[str, Any]]:
        answer = "No. 999" if wrong else answer_of(number)
        return [
            *boxes(self.room.sizes, share),
            choice("category", category),
            text("question", question_of(attempt)),
            text("answer", answer),
        ]


def settled(client: httpx.Client, task: Mapping[str, Any], answer: str) -> dict[str, Any]:
    """A cross-check after the checker's own answer, with the record."""
    said = client.post(f"/darkroom/tasks/{task['id']}/answer", json={"answer": answer})
    assert said.status_code == 200, said.text[:200]
    read: dict[str, Any] = client.get(f"/api/tasks/{task['id']}/").json()
    return read


def boxes(size: tuple[int, int], share: tuple[float, float]) -> list[dict[str, Any]]:
    value = {"x": 25.0, "y": 50.0, "width": share[0], "height": share[1], "rotation": 0, "rectanglelabels": ["target"]}
    frame = {"original_width": size[0], "original_height": size[1], "image_rotation": 0}
    return [{"id": "b", "from_name": "box", "to_name": "image", "type": "rectanglelabels", "value": value, **frame}]


def text(name: str, said: str) -> dict[str, Any]:
    return {"id": name, "from_name": name, "to_name": "image", "type": "textarea", "value": {"text": [said]}}


def choice(name: str, chosen: str) -> dict[str, Any]:
    return {"id": name, "from_name": name, "to_name": "image", "type": "choices", "value": {"choices": [chosen]}}
