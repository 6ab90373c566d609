"""Server around an application: its token, its limits, its address, and its errors as JSON."""

import errno
import gc
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from darkroom.pipelines.processes.process_sessions import url_of
from darkroom.pipelines.services import LOOPBACK, is_let_in
from darkroom.pipelines.services.errors import STATUS, ServiceError, invalid
from darkroom.sandbox.errors import UserError

STOP_SECONDS = 15
"""So long requests that run may go on after the signal to stop."""
KEEP_ALIVE_SECONDS = 75
"""So long an idle connection stays open: longer than httpx keeps one, which would else send into a closing one."""


def speak_json(app: FastAPI) -> None:
    """Answer every error of ``app`` as a ``ServiceError`` in JSON."""
    for kind in (ServiceError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _answered)


def refusal(error: ServiceError) -> Response:
    return JSONResponse(error.body, STATUS[error.kind], {"Retry-After": "1"} if error.kind == "too_busy" else None)


def _answered(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):  # a path or a method that there is not
        return JSONResponse({"error": {"type": "invalid_request", "message": error.detail}}, error.status_code)
    refused = invalid(error) if isinstance(error, RequestValidationError) else error
    assert isinstance(refused, ServiceError)
    return refusal(refused)


def guarded(app: ASGIApp, *, host: str, token: str) -> ASGIApp:
    """Guard ``app`` by ``token`` (empty: none); a loopback host answers to no other name, so no web page gets in."""
    if token:
        app = _WithToken(app, token)
    return TrustedHostMiddleware(app, list(LOOPBACK)) if host in LOOPBACK else app


class _WithToken:
    """Lets requests pass that bring the token, and those for ``/health``."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["type"] not in ("http", "websocket") or scope["path"] == "/health"
        if not is_open and not is_let_in(Headers(scope=scope).get("authorization", ""), token=self._expected):
            error = ServiceError("unauthorized", "expected the header Authorization: Bearer TOKEN")
            await refusal(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def listen(app: ASGIApp, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serves until SIGTERM or Ctrl-C; ``ready`` gets the address. Raises ``UserError`` where it cannot listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        mend = "choose another --port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "correct --host"
        reason = str(error.strerror).partition(" (while attempting")[0]  # Python adds the address
        raise UserError(f"cannot listen at {host}:{port}: {reason}; {mend}") from error
    with listening:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=STOP_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        ready(url_of(host, listening.getsockname()[1]))
        gc.freeze()  # what was imported stays: no collection looks at it again
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again when all is answered
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
