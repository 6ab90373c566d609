"""A scripted endpoint on loopback: what a model, or a judge, would answer."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class JsonHandler(BaseHTTPRequestHandler):
    """Answers requests with JSON; a subclass says what to ``answer`` to a body that was posted."""

    def do_GET(self) -> None:
        self.reply({"object": "list", "data": []})

    def do_POST(self) -> None:
        self.reply(self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

    def answer(self, body: dict[str, Any]) -> Any:
        raise NotImplementedError

    def reply(self, value: Any, *, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
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
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
