"""Server around an application: its token, its limits, its address, and its errors as JSON."""

import asyncio
import errno
import gc
import re
import resource
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack, suppress
from functools import partial
from itertools import chain
from typing import Any

import h11
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
from darkroom.pipelines.services import LOOPBACK, STATUS, ServiceError, invalid, is_let_in
from darkroom.pipelines.services.files import SMALL_PIXELS, AnswerImages
from darkroom.sandbox.errors import UserError
from darkroom.sandbox.terminal import SafeConsole

STOP_SECONDS = 15
"""So long requests that run may go on after the signal to stop."""
KEEP_ALIVE_SECONDS = 75
"""So long an idle connection stays open: longer than httpx keeps one, which would else send into a closing one."""


def speak_json(app: FastAPI) -> None:
    for kind in (ServiceError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _answered)


def refusal(error: ServiceError) -> Response:
    return JSONResponse(error.body, STATUS[error.kind], {"Retry-After": "1"} if error.kind == "too_busy" else None)


def _answered(_: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):  # a path or a method that there is not
        told = {"error": {"type": "invalid_request", "message": error.detail}}
        return JSONResponse(told, error.status_code, error.headers)
    refused = invalid(error) if isinstance(error, RequestValidationError) else error
    assert isinstance(refused, ServiceError)
    return refusal(refused)


MAX_PARTS = 50_000
"""Strings, commas and brackets of a request's JSON: two bytes to its sender, here an object each, often an error."""
SMALL_MB = 4
"""Of a request that carries no images."""
HEADER_SECONDS, BODY_SECONDS, READ_SECONDS = 20, 300, 120
"""So long a client may take for them, and to read an answer."""
HELD_MB = 256
"""Of the bodies that are worked on, all together, or four of the largest; each client half."""
PIECE = 1 << 20
"""Bytes of an answer that are handed over at once."""
SMALL_PIECE, HEADER_BYTES = 1 << 10, 1 << 15
"""Of a body, of which there may be ``MAX_PARTS``; of headers, which what comes at once may double."""
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


def most_connections() -> int:
    """Half of the descriptors that the process may have; sessions need the others."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2


class _Bounded:
    """Reads a body before anything else looks at it, and refuses one of too many bytes or values, or beside too many
    others. The scope has the ``images`` of the answer, and ``sent``, a stack that is closed when it was sent."""

    def __init__(self, app: ASGIApp, most_mb: int, with_images: Collection[str]) -> None:
        self._app, self._most_mb, self._with_images = app, most_mb, with_images
        self._most_held = max(HELD_MB, 4 * most_mb) << 20
        self._held: Counter[str] = Counter()
        self._n_sockets = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            client, body = (scope.get("client") or [""])[0], bytearray()
            try:
                await self._answer(scope, receive, send, client, body)
            finally:
                self._held[client] -= len(body)
                self._held += Counter()  # without clients that hold nothing
        elif scope["type"] == "websocket" and self._n_sockets >= most_connections() // 2:
            await refusal(ServiceError("too_busy", "too many WebSockets are open"))(scope, receive, send)
        else:
            self._n_sockets += 1  # the lifespan is one, too
            try:
                await self._app(scope, receive, send)
            finally:
                self._n_sockets -= 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send, client: str, body: bytearray) -> None:
        most_mb = self._most_mb if scope["path"] in self._with_images else min(SMALL_MB, self._most_mb)
        is_whole = False
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while not is_whole:
                    if (message := await receive())["type"] == "http.disconnect":
                        return
                    body += (piece := message.get("body", b""))
                    self._held[client] += len(piece)
                    is_whole = not message.get("more_body")
                    if len(body) > most_mb << 20:
                        raise ServiceError("request_too_large", f"the body has more than {most_mb} MiB")
                    if self._held[client] > self._most_held // 2 or self._held.total() > self._most_held:
                        raise ServiceError("too_busy", "too much is being read: ask again in a second")
            if len(body) > MAX_PARTS:  # a shorter one cannot have as many
                await asyncio.to_thread(check_parts, bytes(body))
        except (ServiceError, TimeoutError) as error:
            late = ServiceError("invalid_request", f"the body was not there within {BODY_SECONDS} s")
            await refusal(error if isinstance(error, ServiceError) else late)(scope, receive, send)
            return
        whole = iter([{"type": "http.request", "body": bytes(body), "more_body": False}])

        async def read() -> Message:
            return next(whole, None) or await receive()

        scope["images"] = images = AnswerImages()
        async with AsyncExitStack() as scope["sent"]:
            scope["sent"].callback(images.clear)  # the scope is kept until the connection's next request
            await self._app(scope, read, partial(_write, send, images))


async def _write(send: Send, images: AnswerImages, message: Message) -> None:
    """Send an answer in pieces, no faster than they are read."""
    if images and message["type"] == "http.response.start":
        headers = [(name, value) for name, value in message["headers"] if name.lower() != b"content-length"]
        await send({**message, "headers": headers})
    elif len(body := message.get("body", b"")) > PIECE or images:
        pieces = images.fill(body)
        is_large = sum(image.width * image.height for image, _ in images) > SMALL_PIXELS
        while piece := await asyncio.to_thread(next, pieces, None) if is_large else next(pieces, None):
            for start in range(0, len(piece), PIECE):
                await send({**message, "body": piece[start : start + PIECE], "more_body": True})
        await send({**message, "body": b""})
    else:
        await send(message)


def guarded(app: ASGIApp, *, host: str, token: str, most_mb: int, with_images: Collection[str] = ()) -> ASGIApp:
    """Guard ``app`` by ``token`` (empty: none), against pages of other origins, and by limits on bodies, ``most_mb`` at
    the paths ``with_images``; a loopback host answers to no other name, so no web page gets in."""
    app = _LetIn(_Bounded(app, most_mb, with_images), token)
    return TrustedHostMiddleware(app, list(LOOPBACK)) if host in LOOPBACK else app


class _LetIn:
    """Lets requests pass that no page of another origin sends, and that bring the token or are for ``/health``."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, f"Bearer {token}" if token else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            headers, fault = Headers(scope=scope), ""
            if "origin" in headers and headers["origin"].partition("://")[2] != headers.get("host"):
                fault = "a page of another origin is not let in"
            elif scope["path"] != "/health" and not is_let_in(headers.get("authorization", ""), token=self._token):
                fault = "expected the header Authorization: Bearer TOKEN"
            if fault:
                await refusal(ServiceError("unauthorized", fault))(scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Counted(h11.Connection):
    """Refuses a body of too many small pieces, each of which holds the loop for longer than its bytes are worth."""

    n_small = 0

    def next_event(self) -> Any:
        event = super().next_event()
        is_small = isinstance(event, h11.Data) and len(event.data) < SMALL_PIECE
        self.n_small = 0 if isinstance(event, h11.Request) else self.n_small + is_small
        if self.n_small > MAX_PARTS:
            raise h11.RemoteProtocolError("the body comes in too many small pieces")
        return event


class _Impatient(H11Protocol):
    """Hangs up where a connection's first headers do not come, or an answer is not read: it would hold a descriptor for
    ever. Of too many connections the oldest ends that brought no whole request."""

    unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.conn, self.since = _Counted(h11.SERVER, HEADER_BYTES), self.loop.time()
        self.loop.call_later(HEADER_SECONDS, self._hang_up)
        if len(self.connections) > most_connections():
            waiting = (each for each in self.connections if isinstance(each, _Impatient) and each.waits)
            oldest = min(waiting, key=lambda each: each.since)
            self.connections.discard(oldest)
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), HEADER_BYTES):  # else headers that come at once had no limit
            if self in self.connections and not self.transport.is_closing():
                super().data_received(data[start : start + HEADER_BYTES])

    def send_400_response(self, msg: str) -> None:
        if self.cycle:
            self.cycle.disconnected = True  # no client is left to answer
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # the answer has begun
            self.transport.abort()

    @property
    def waits(self) -> bool:
        return not self.cycle or self.cycle.response_complete or self.cycle.more_body

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread = self.unread or self.loop.call_later(READ_SECONDS, self.transport.abort)

    def on_response_complete(self) -> None:
        if self.unread:
            self.unread.cancel()
        self.unread = None
        super().on_response_complete()

    def _hang_up(self) -> None:
        if self in self.connections and not self.cycle:
            self.transport.close()


def listen(app: ASGIApp, host: str, port: int, ready: Callable[[str], str]) -> None:
    """Serve until SIGTERM or Ctrl-C; prints what ``ready`` makes of the address. Raises ``UserError`` if it cannot."""
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
            ws_per_message_deflate=False,  # what is unpacked costs its sender nothing
            timeout_graceful_shutdown=STOP_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        says = ready(url_of(host, listening.getsockname()[1]))
        SafeConsole(stderr=True).print(says, markup=False, soft_wrap=True)
        gc.freeze()  # what was imported stays: no collection looks at it again
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again when all is answered
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
