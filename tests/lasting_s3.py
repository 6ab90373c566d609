"""moto's S3 with a log of all that was written, which a server that is started again reads before it listens.

python -m tests.lasting_s3 PORT LOG       # uploads in parts are lost: their numbers are others then
"""

from __future__ import annotations

import base64
import io
import json
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
from werkzeug.test import run_wsgi_app

_READING = ("GET", "HEAD")
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class Logged:
    """The application, with every request that writes in the log before it is done."""

    def __init__(self, application: Application, log: Path) -> None:
        self._application, self._log, self._lock = application, log, threading.Lock()
        for line in _whole_lines(log):
            request = json.loads(line)
            body = io.BytesIO(base64.b64decode(request["body"]))
            streams = {"wsgi.input": body, "wsgi.errors": sys.stderr, "wsgi.url_scheme": "http"}
            run_wsgi_app(application, request["variables"] | streams)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in _READING:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = io.BytesIO(body)
            variables = {name: value for name, value in environ.items() if isinstance(value, str)}
            request = {"variables": variables, "body": base64.b64encode(body).decode()}
            with self._lock, self._log.open("a") as log:
                log.write(json.dumps(request) + "\n")
        return self._application(environ, start_response)


def _whole_lines(log: Path) -> list[bytes]:
    """Without the part of a line that a kill left, which is cut off."""
    written = log.read_bytes() if log.exists() else b""
    whole = written[: written.rfind(b"\n") + 1]
    log.write_bytes(whole)
    return whole.splitlines()


if __name__ == "__main__":
    dispatcher = DomainDispatcherApplication(create_backend_app)
    run_simple("127.0.0.1", int(sys.argv[1]), Logged(dispatcher, Path(sys.argv[2])), threaded=True)
