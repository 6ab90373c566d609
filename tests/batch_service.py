"""OpenAI's Batch API on loopback, as the SDK meets it: files, batches, their states, and the chat endpoint beside it.

A batch stays in ``validating`` until the test ends it. Answers depend on the request alone, live or in a batch: the
``i``-th of ``n`` is that of the request with the seed ``i`` higher.
"""

import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from tests.json_endpoint import JsonHandler, endpoint

Line = dict[str, Any]
_BOUNDARY = re.compile(r"boundary=\"?([^\";]+)")


def answer_texts(body: Mapping[str, Any]) -> list[str]:
    """What the model says to a request: a vote where it has a schema, else a turn. Each names itself."""
    texts = []
    for number in range(body.get("n", 1)):
        asked = {**body, "seed": body["seed"] + number, "n": None}
        name = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
        vote = {"reason": name, "verdict": int(name, 16) % 3 > 0, "issue": "fine as it is", "operation": -1}
        said = f"<think>{name}</think><answer>{'yes' if int(name, 16) % 2 else 'no'}</answer>"
        texts.append(json.dumps(vote) if "response_format" in body else said)
    return texts


def completion(body: Mapping[str, Any]) -> dict[str, Any]:
    texts = answer_texts(body)
    message = {"role": "assistant"}
    choices = [{"index": n, "finish_reason": "stop", "message": {**message, "content": t}} for n, t in enumerate(texts)]
    usage = {"prompt_tokens": 100, "completion_tokens": 20 * len(texts)}
    return {"id": "c", "object": "chat.completion", "model": body["model"], "choices": choices, "usage": usage}


def answered(line: Line) -> Line:
    """The line of answers to a line of requests."""
    response = {"status_code": 200, "request_id": "r", "body": completion(line["body"])}
    return {"id": "batch_req_1", "custom_id": line["custom_id"], "response": response, "error": None}


def refused(line: Line, status: int = 400, message: str = "this request is wrong in itself") -> Line:
    """A line of the error file."""
    response = {"status_code": status, "request_id": "r", "body": {"error": {"message": message}}}
    return {"id": "batch_req_1", "custom_id": line["custom_id"], "response": response, "error": None}


def expired(line: Line) -> Line:
    error = {"code": "batch_expired", "message": "This request could not be executed before the window expired."}
    return {"id": "batch_req_1", "custom_id": line["custom_id"], "response": None, "error": error}


@dataclass
class BatchService:
    """``fails``: by method and path, a status to answer with, or a function to call before the answer."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    paid: Counter[str] = field(default_factory=Counter)
    """Answers by their text: what a real service is paid for."""
    n_live: int = 0
    fails: dict[str, int | Callable[[], object]] = field(default_factory=dict)
    after: dict[str, Callable[[], object]] = field(default_factory=dict)
    """By method and path: called after the work is done, before the answer is sent."""
    live_bodies: list[dict[str, Any]] = field(default_factory=list)
    process: int | None = None
    """Whoever is to be killed."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def lines(self, batch: str) -> list[Line]:
        content = self.files[self.batches[batch]["input_file_id"]]
        return [json.loads(line) for line in content.splitlines()]

    @property
    def open(self) -> list[str]:
        return [name for name, batch in self.batches.items() if batch["status"] == "validating"]

    def end(
        self,
        batch: str,
        status: str = "completed",
        *,
        answers: Callable[[list[Line]], list[Line]] = lambda lines: [*map(answered, lines)],
        errors: Callable[[list[Line]], list[Line]] = lambda _: [],
        extra: bytes = b"",
        error: Mapping[str, Any] | None = None,
    ) -> None:
        """Gives a batch its last state, with the files that ``answers`` and ``errors`` make of its lines."""
        lines = self.lines(batch)
        self.pay(answers(lines))
        fields: dict[str, Any] = {"status": status, "output_file_id": None, "error_file_id": ""}
        for name, made in (("output_file_id", answers(lines)), ("error_file_id", errors(lines))):
            if made or (extra and name == "output_file_id"):
                fields[name] = self._keep(b"".join(json.dumps(each).encode() + b"\n" for each in made) + extra)
        if error:
            fields["errors"] = {"object": "list", "data": [dict(error)]}
        self.batches[batch] |= fields

    def end_all(self) -> None:
        for batch in self.open:
            self.end(batch)

    def pay(self, lines: list[Line]) -> None:
        for line in {line["custom_id"]: line for line in lines}.values():
            choices = ((line["response"] or {}).get("body") or {}).get("choices", [])
            self.paid.update(choice["message"]["content"] for choice in choices)

    def _keep(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    def act(self, method: str, path: str, body: bytes, content_type: str) -> Any:
        """The answer to a request: JSON, or bytes."""
        with self.lock:
            if path == "/models":
                return {"object": "list", "data": []}
            if path == "/files":
                return {"id": self._keep(_uploaded(body, content_type)), "object": "file", "purpose": "batch"}
            if path.startswith("/files/"):
                return self.files[path.split("/")[2]]
            if path == "/chat/completions":
                return self._complete(json.loads(body))
            if path == "/batches" and method == "POST":
                return self._create(json.loads(body))
            if path.startswith("/batches/"):
                return self.batches[path.split("/")[2]]
            return {"object": "list", "data": [*reversed(self.batches.values())], "has_more": False}

    def _complete(self, body: dict[str, Any]) -> Any:
        self.n_live += 1
        self.live_bodies.append(body)
        said = completion(body)
        self.paid.update(choice["message"]["content"] for choice in said["choices"])
        return said

    def _create(self, fields: dict[str, Any]) -> Any:
        name = f"batch_{len(self.batches)}"
        made = {"id": name, "object": "batch", "status": "validating", "created_at": int(time.time())}
        self.batches[name] = {**made, **fields, "output_file_id": None, "error_file_id": None, "errors": None}
        return self.batches[name]

    @contextmanager
    def serving(self) -> Iterator[Self]:
        service = self

        class Handler(JsonHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                path = self.path.partition("?")[0].removeprefix("/v1")
                act = f"{self.command} {path}"
                failure = service.fails.get(act)
                if isinstance(failure, int):
                    return self.reply({"error": {"message": "not here"}}, status=failure)
                if failure is not None:
                    failure()
                said = service.act(self.command, path, body, self.headers.get("Content-Type", ""))
                if act in service.after:
                    service.after[act]()
                self.reply(said)

            do_POST = do_GET

        with endpoint(Handler) as self.url:
            yield self


def _uploaded(body: bytes, content_type: str) -> bytes:
    """The file of a multipart form."""
    found = _BOUNDARY.search(content_type)
    assert found is not None
    parts = body.split(b"--" + found[1].encode())
    (part,) = (part for part in parts if b"filename=" in part)
    return part.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
