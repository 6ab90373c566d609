"""A scripted endpoint on loopback: what a model, or a judge, would answer."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class JsonHandler(BaseHTTPRequestHandler):
    """Answers requests with JSON; a subclass says what to ``answer`` to a body that was posted."""

    def do_GET(self) -> None:
        self.reply({"object": "list", "data": []})

    def do_POST(self) -> None:
        self.reply(self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

    def answer(self, body: dict[str, Any]) -> Any:
        raise NotImplementedError

    def reply(self, value: Any, *, status: int = 200) -> None:
        """A string, or bytes, are sent as they are."""
        text = value if isinstance(value, str | bytes) else json.dumps(value)
        data = text if isinstance(text, bytes) else text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if data.startswith(b"<") else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    """Connections that wait to be accepted; by default 5, and the kernel drops the others of a burst."""


@contextmanager
def endpoint(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Its address, with /v1."""
    with _Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@dataclass
class ScriptedServer:
    """Answers with a status and a body, one after the other, the last one for ever."""

    answers: list[tuple[int, Any]]
    url: str = ""
    asked: list[tuple[str, Any, dict[str, str]]] = field(default_factory=list)
    """Path, body (``{}`` without one) and headers by their names in lower case."""

    def says(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)

    def next(self) -> tuple[int, Any]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    @property
    def last(self) -> Any:
        """The last body."""
        return self.asked[-1][1]

    @contextmanager
    def serving(self) -> Iterator[Self]:
        scripted = self

        class Handler(JsonHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                scripted.asked.append((self.path, json.loads(body or "{}"), headers))
                status, value = scripted.next()
                self.reply(value, status=status)

            do_POST = do_PATCH = do_DELETE = do_GET

            def end_headers(self) -> None:
                self.send_header("Retry-After-Ms", "1")
                super().end_headers()

        with endpoint(Handler) as self.url:
            yield self
