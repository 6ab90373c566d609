"""Server around an application: its token, its limits, its address, and its errors as JSON."""

import asyncio
import errno
import gc
import re
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import chain

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

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


MAX_PARTS = 50_000
"""Strings, commas and brackets of a request's JSON. A value costs its sender two bytes; here it is an object, and often
an error of its own."""
SMALL_MB = 4
"""Of a request that carries no images."""
HEADER_SECONDS, BODY_SECONDS = 20, 300
"""So long a client may take for them."""
WITH_IMAGES = ("/sessions", "/mcp", "/v1/chat/completions")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+', re.DOTALL)


def check_parts(body: bytes) -> None:
    """Raises ``ServiceError`` (request_too_large) for JSON of more than ``MAX_PARTS``, before any of it is parsed."""
    n_parts, end = 0, 0
    for string in chain(_STRING.finditer(body), [None]):
        start = string.start() if string else len(body)
        n_parts += 1 + sum(body.count(mark, end, start) for mark in (b",", b"[", b"{"))
        if n_parts > MAX_PARTS:
            raise ServiceError("request_too_large", f"the body has more than {MAX_PARTS:,} values: send fewer at once")
        end = string.end() if string else start


class _Bounded:
    """Reads a body before anything else looks at it, and refuses one of too many bytes or values."""

    def __init__(self, app: ASGIApp, most_mb: int) -> None:
        self._app, self._most_mb = app, most_mb

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most_mb = self._most_mb if scope["path"] in WITH_IMAGES else min(SMALL_MB, self._most_mb)
        body, is_whole = bytearray(), False
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while not is_whole:
                    if (message := await receive())["type"] == "http.disconnect":
                        return
                    body += message.get("body", b"")
                    is_whole = not message.get("more_body")
                    if len(body) > most_mb << 20:
                        raise ServiceError("request_too_large", f"the body has more than {most_mb} MiB")
            if len(body) > MAX_PARTS:  # a shorter one cannot have as many
                await asyncio.to_thread(check_parts, bytes(body))
        except (ServiceError, TimeoutError) as error:
            late = ServiceError("invalid_request", f"the body was not there within {BODY_SECONDS} s")
            await refusal(error if isinstance(error, ServiceError) else late)(scope, receive, send)
            return
        whole = iter([{"type": "http.request", "body": bytes(body), "more_body": False}])

        async def read() -> Message:
            return next(whole, None) or await receive()

        await self._app(scope, read, send)


def guarded(app: ASGIApp, *, host: str, token: str, most_mb: int) -> ASGIApp:
    """Guard ``app`` by ``token`` (empty: none) and by limits on bodies, ``most_mb`` where they carry images; a loopback
    host answers to no other name, so no web page gets in."""
    app = _Bounded(app, most_mb)
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


class _Impatient(H11Protocol):
    """Hangs up where the headers of a connection's first request do not come: it would hold a descriptor for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(HEADER_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        if self in self.connections and getattr(self, "cycle", None) is None:
            self.transport.close()


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
            http=_Impatient,  # httptools has no limit for headers
            ws_max_size=SMALL_MB << 20,
            timeout_graceful_shutdown=STOP_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        ready(url_of(host, listening.getsockname()[1]))
        gc.freeze()  # what was imported stays: no collection looks at it again
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again when all is answered
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
