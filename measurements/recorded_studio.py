"""Label Studio's answers to a sync without Label Studio: tasks and annotations as they were sent, held in memory.

For measurements of the sync where filling the real server would take hours; ``python -m measurements.annotation
--recorded``. Its answers have the fields of the real ones; it has no filters but those that a sync uses.
"""

from __future__ import annotations

import json
import multiprocessing
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

PAGE = 200


class Running(NamedTuple):
    """A server in a process of its own."""

    url: str
    pid: int


@contextmanager
def recorded_studio() -> Iterator[Running]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    assert process.pid is not None
    try:
        yield Running(f"http://127.0.0.1:{ours.recv()}", process.pid)
    finally:
        process.kill()
        process.join()


def _serve(pipe: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    pipe.send(server.server_port)
    server.serve_forever()


@dataclass
class _Task:
    project: int
    data: dict[str, Any]
    overlap: int
    updated_at: datetime
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class _Studio:
    projects: list[dict[str, Any]] = field(default_factory=list)
    tasks: dict[int, _Task] = field(default_factory=dict)
    numbers: dict[int, list[int]] = field(default_factory=dict)
    """Of the tasks of each project."""
    n_annotations: int = 0
    lock: Lock = field(default_factory=Lock)

    def answer(self, method: str, route: list[str], query: dict[str, str], body: Any) -> Any:
        match method, route:
            case "GET", ["health"]:
                return {"status": "UP"}
            case _, ["darkroom", "people"]:
                person = {"id": 2, "email": "author@example.com", "name": "A", "role": "annotator", "token": "x"}
                return person if method == "POST" else {"people": [person]}
            case "GET", ["darkroom", "hits"]:
                return {"hits": []}
            case "GET", ["api", "projects"]:
                results = self.projects if query.get("page", "1") == "1" else []  # the SDK asks until there are none
                return {"count": len(self.projects), "next": None, "previous": None, "results": results}
            case "POST", ["api", "projects"]:
                self.projects.append({**body, "id": len(self.projects) + 1})
                self.numbers[len(self.projects)] = []
                return self.projects[-1]
            case "GET", ["api", "projects", project]:
                return {**self.projects[int(project) - 1], "task_number": len(self.numbers[int(project)])}
            case "PATCH", ["api", "projects", project]:
                self.projects[int(project) - 1] |= body
                return self.projects[int(project) - 1]
            case "POST", ["api", "projects", project, "import"]:
                return {"task_ids": [self._add(int(project), task) for task in body]}
            case "POST", ["api", "tasks", task, "annotations"]:
                return self._annotate(self.tasks[int(task)], body)
            case "GET", ["darkroom", "tasks" | "changes" as what]:
                return self._page(what, query)
        raise KeyError((method, route))

    def _add(self, project: int, sent: dict[str, Any]) -> int:
        number, overlap = len(self.tasks) + 1, self.projects[project - 1]["maximum_annotations"]
        task = self.tasks[number] = _Task(project, sent["data"], overlap, datetime.now(UTC))
        for annotation in sent.get("annotations", ()):
            self._annotate(task, annotation)
        self.numbers[project].append(number)
        return number

    def _annotate(self, task: _Task, sent: dict[str, Any]) -> dict[str, Any]:
        self.n_annotations += 1
        task.updated_at = datetime.now(UTC)
        at = task.updated_at.isoformat()
        fixed = {"updated_by": None, "was_cancelled": False, "ground_truth": False, "created_at": at, "updated_at": at}
        task.annotations.append({"lead_time": None, **sent, **fixed, "id": self.n_annotations})
        return task.annotations[-1]

    def _page(self, what: str, query: dict[str, str]) -> Any:
        numbers, rows = self.numbers[int(query["project"])], []
        since = datetime.fromisoformat(query["since"]) if query.get("since") else None
        for number in numbers[bisect_right(numbers, int(query["after"])) :]:
            task = self.tasks[number]
            if what == "tasks":
                counts = {"n_annotations": len(task.annotations), "overlap": task.overlap}
                rows.append({"id": number, "data": task.data, **counts})
            elif len(task.annotations) > int(query["minimum"]) and (since is None or task.updated_at > since):
                rows.append({"id": number, "annotations": task.annotations})
            if len(rows) == PAGE:
                break
        return {"tasks": rows, "next": rows[-1]["id"] if len(rows) == PAGE else None}


_STUDIO = _Studio()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        with _STUDIO.lock:
            route = [part for part in parts.path.split("/") if part]
            answer = _STUDIO.answer(self.command, route, dict(parse_qsl(parts.query)), body)
        payload = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    do_POST = do_PATCH = do_GET

    def log_message(self, *args: object) -> None:
        """Quiet."""
