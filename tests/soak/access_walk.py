"""A campaign with a canary in everything that one person must not see of another, and every address of the server.

A canary is a word that stands in one place only: in an answer, a draft, a comment, a name, a token. ``Campaign.leaks``
finds those in a text that the reader may not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import httpx

from darkroom.annotation._plugin.darkroom_studio.access import AccessRule
from darkroom.annotation.label_studio.client import LabelStudioClient
from darkroom.annotation.rounds.campaign import Campaign as Rules
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.sync import Sync
from darkroom.pipelines.records import ImageRef, PoolImage
from tests.e2e.annotators import boxes, choice, http_client, text

SIZE = (4000, 3000)
PASSWORD = "a secret of theirs 1"
ADMIN, NOBODY = "admin@darkroom.local", ""
ANN, BOB, ZOE = "canary.ann@example.com", "canary.bob@example.com", "canary.zoe@example.com"
EVE, FAY = "canary.eve@example.com", "canary.fay@example.com"
ROLES = {ANN: "annotator", BOB: "checker", ZOE: "annotator", EVE: "expert", FAY: "expert"}
FILTER = {"filter": "filter:tasks:annotations_results", "operator": "contains", "type": "String", "value": "Canary"}
QUERY = json.dumps({"filters": {"conjunction": "and", "items": [FILTER]}, "ordering": ["-tasks:annotators"]})
PARAMETERS: Sequence[Mapping[str, str]] = (
    {"fields": "all"},
    {"include": "id,annotations,annotators,drafts,completed_by,created_by,email,token"},
    {"query": QUERY},
    {"filters": json.dumps([FILTER])},
    {"ordering": "-annotations_results"},
    {"selectedItems": json.dumps({"all": True, "excluded": []})},
    {"view": "1"},
    {"tabID": "1"},
    {"expand": "annotations.completed_by"},
    {"review": "true"},
    {"annotations_stub": "true"},
    {"search": "Canary"},
    {"format": "json"},
)
PRACTISED = "Canarypractice"
"""Begins the canaries that no address shows to the admin either."""
GOLD = '"ground_truth": true'
HIGHEST = 14
"""Above every number of a project, task, annotation, draft and account of the campaign."""


class Call(NamedTuple):
    """A request to one route."""

    route: str
    method: str
    path: str
    parameters: Mapping[str, str]
    body: Any = None


class Annotations(NamedTuple):
    """Numbers of a person's annotations."""

    submitted: int
    reserved: int


@dataclass
class Campaign:
    """People at work: five images, three records, three checks, two acceptances, two planted errors, drafts."""

    studio: LabelStudioClient
    journal: Journal
    admin_token: str
    tokens: dict[str, str] = field(default_factory=dict)
    canaries: dict[str, set[str]] = field(default_factory=dict)
    """Words, with everybody who may read them."""
    given: dict[str, list[int]] = field(default_factory=dict)
    """The tasks that each person was given."""

    def leaks(self, reader: str, content: str) -> list[str]:
        """The canaries in a text that its reader may not know."""
        return [word for word, readers in self.canaries.items() if word in content and reader not in readers]

    def play(self) -> None:
        self.canaries = {ADMIN: set(), self.admin_token: set(), GOLD: set()}
        for email, role in ROLES.items():
            name = f"Canaryname{email[7:10]}"
            self.tokens[email] = self.studio.add_person(email, role=role, password=PASSWORD, name=name)["token"]
            self.canaries |= {email: {email}, name: {email}, self.tokens[email]: {email}}
        self._sync()
        self._ask_for_practice()
        for number in range(3):
            self._submit(
                ANN, self.take(ANN, "annotate"), self._record(f"Canaryanswer{number}", f"Canaryquestion{number}")
            )
        self._draft(ANN, self.take(ANN, "annotate"), "Canarydraftann")
        unwritten = self.take(ZOE, "annotate")
        gold = {
            "result": self._record("Canarygold", "Canarygoldquestion"),
            "ground_truth": True,
            "lead_time": 1.0,
        }
        self._post(self.admin_token, f"/api/tasks/{unwritten['id']}/annotations/", gold)
        self._sync()
        for number in range(2):
            task = self.take(BOB, "cross_check")
            self.settle(BOB, task, self._canary(f"Canaryblindbob{number}", BOB))
            self._submit(BOB, task, self.check(BOB, f"bob{number}"))
        self._draft(BOB, self.take(BOB, "cross_check"), "Canarydraftbob")
        self._sync()
        self._submit(FAY, self.take(FAY, "accept"), self.check(FAY, "fay"))
        self.take(EVE, "accept")

    def _ask_for_practice(self) -> None:
        """Of another campaign on the same server; the right answers are no one's to know before they have answered."""
        frame = {"image": "a" * 64, "size": SIZE, "boxes": [[10, 10, 90, 90]], "category": "OCR", "count": None}
        words = [self._canary(f"{PRACTISED}{number}") for number in range(10)]
        items = [
            {**frame, "key": right, "question": "?", "answer": right, "planted": {**frame, "answer": wrong}}
            for right, wrong in zip(words[::2], words[1::2], strict=True)
        ]
        content = {"digest": "1", "language": "en", "passages": {}, "items": items}
        self.studio.set_practice("elsewhere", content)

    def project(self, round: str) -> int:
        project = self.journal.project(round)
        assert project is not None
        return project.project_id

    def take(self, email: str, round: str) -> dict[str, Any]:
        """The next task, as the label stream gives it; what it shows, its reader may know."""
        answer = self._post(self.tokens[email], f"/api/dm/actions?id=next_task&project={self.project(round)}", {})
        self.given.setdefault(email, []).append(answer["id"])
        self._shown(email, answer)
        return answer

    def settle(self, email: str, task: Mapping[str, Any], answer: str) -> dict[str, Any]:
        """A checker's own answer, and the task with the record, which they may know from then on."""
        self._post(self.tokens[email], f"/darkroom/tasks/{task['id']}/answer", {"answer": answer})
        headers = {"Authorization": f"Token {self.tokens[email]}"}
        path = f"{self.studio.url}/api/tasks/{task['id']}/"
        read: dict[str, Any] = httpx.get(path, headers=headers, timeout=300, trust_env=False).json()
        self._shown(email, read)
        return read

    def _shown(self, email: str, task: Mapping[str, Any]) -> None:
        for word, readers in self.canaries.items():
            if word in json.dumps([task["data"], task["predictions"]]):
                readers.add(email)

    def annotations(self, email: str) -> Annotations:
        """What a person submitted first, and the empty annotation that keeps a planted error from them."""
        headers = {"Authorization": f"Token {self.admin_token}"}
        number = next(person.person_id for person in self.studio.people() if person.email == email)
        path = f"/api/tasks?project={self.project('cross_check')}&fields=all&page_size=100"
        tasks = httpx.get(self.studio.url + path, headers=headers, timeout=300, trust_env=False).json()["tasks"]
        own = [one for task in tasks for one in task["annotations"] if one["completed_by"] == number]
        return Annotations(
            next(one["id"] for one in own if one["result"]), next(one["id"] for one in own if not one["result"])
        )

    def _sync(self) -> None:
        pool = [PoolImage(ImageRef(c * 64, *SIZE, "RGB", "JPEG"), "ours", c, "CC0-1.0") for c in "abcde"]
        Sync(self.journal, self.studio, Rules(name="walked", gold_share=1.0), say=lambda text: None).run(pool)

    def _submit(self, email: str, task: Mapping[str, Any], result: list[dict[str, Any]]) -> None:
        for word, readers in self.canaries.items():
            if word in json.dumps(result):
                readers.add(email)
        self._post(self.tokens[email], f"/api/tasks/{task['id']}/annotations/", {"result": result, "lead_time": 9.0})

    def _draft(self, email: str, task: Mapping[str, Any], word: str) -> None:
        body = {"result": [text("answer", self._canary(word, email))], "lead_time": 3.0}
        self._post(self.tokens[email], f"/api/tasks/{task['id']}/drafts?project={task['project']}", body)

    def _record(self, answer: str, question: str) -> list[dict[str, Any]]:
        texts = [text("question", self._canary(question)), text("answer", self._canary(answer))]
        return [*boxes(SIZE, (4.0, 3.0)), choice("category", "ocr"), *texts]

    def check(self, email: str, word: str) -> list[dict[str, Any]]:
        said = [text("blind_answer", self._canary(f"Canaryblind{word}", email)), choice("verdict", "accept")]
        return [*said, text("comment", self._canary(f"Canarycomment{word}", email)), *boxes(SIZE, (4.0, 3.0))]

    def _canary(self, word: str, *readers: str) -> str:
        self.canaries[word] = set(readers)
        return word

    def _post(self, token: str, path: str, body: Any) -> Any:
        headers = {"Authorization": f"Token {token}"}
        said = httpx.post(self.studio.url + path, json=body, headers=headers, timeout=300, trust_env=False)
        assert said.status_code in (200, 201), (path, said.status_code, said.text[:300])
        return said.json()


def log_in(url: str, email: str) -> httpx.Client:
    """A browser's session; without an address, nobody's."""
    client = http_client(url)
    if email:
        client.get("/user/login/")
        body = {"email": email, "password": PASSWORD, "csrfmiddlewaretoken": client.cookies["csrftoken"]}
        assert client.post("/user/login/", data=body, headers={"Referer": url}).status_code == 302
    return client


def reads(route: str, *, rules: Sequence[AccessRule], project: int) -> Iterator[Call]:
    """GET with every number and every parameter; of a closed route, and of files, one is enough."""
    paths = list(addresses(route))
    is_open = any("GET" in rule.methods and not rule.public and rule.constant is None for rule in rules)
    for path in paths if is_open else paths[:1]:
        yield Call(route, "GET", path, {})
    for parameters in PARAMETERS if is_open else ():
        yield Call(route, "GET", paths[0], {**parameters, "project": str(project)})


def writes(route: str, *, is_open: bool) -> Iterator[Call]:
    for method in ("POST", "PUT", "PATCH", "DELETE") if is_open else ("POST",):
        yield Call(route, method, next(addresses(route)), {}, {})


def addresses(route: str) -> Iterator[str]:
    """Addresses that Django resolves to a route, with every number in it."""
    route = route.replace("<drf_format_suffix:format>", ".json")
    plain = re.sub(r"\(\?P<(\w+)>(?:\[[^\]]*\]|[^()\[\]])*\)\??", r"<\1>", route)  # (?P<pk>[^/.]+) -> <pk>
    plain = re.sub(r"/\?$", "/", plain.removesuffix("$").replace("/?$", "/")).replace("\\", "")
    names = re.findall(r"<(?:\w+:)?(\w+)>", plain)
    for values in product(*(_values(name) for name in names)):
        address = plain
        for value in values:
            address = re.sub(r"<[^<>]*>", value, address, count=1)
        yield "/" + address.removesuffix("/?")


def _values(name: str) -> Sequence[str]:
    if name in ("pk", "id", "task_id", "project_id"):
        return [str(number) for number in range(1, HIGHEST)]
    words = {
        "format": "json",
        "entity_name": "task",
        "app_label": "tasks",
        "action_id": "next_task",
        "sha256": "a" * 64,
    }
    return [words.get(name, "1")]
