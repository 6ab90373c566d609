"""What the services' applications have around them: a token, limits, an address, and an end."""

import secrets
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.services.errors import STATUS, ServiceError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
STOP_SECONDS = 15
"""So long requests that run may go on after the signal to stop."""


def answer_errors(app: FastAPI) -> None:
    """Every error that ``app`` answers is a ``ServiceError`` as JSON."""
    app.add_exception_handler(ServiceError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    headers = {"Retry-After": "1"} if error.kind == "too_busy" else None
    return JSONResponse(error.body, STATUS[error.kind], headers)


def _invalid(_: Request, error: Exception) -> Response:
    """FastAPI's own answer would repeat what was sent, images included."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "the request"
    return _refused(_, ServiceError("invalid_request", f"{where}: {first['msg'].removeprefix('Value error, ')}"))


def guarded(app: ASGIApp, *, host: str, token: str, most_mb: int) -> ASGIApp:
    """``app`` for clients that bring ``token`` (empty: for all), with bodies of at most so many MiB.

    On this machine's own address it answers to no other name, so that no page in a browser reaches it under a name of
    its own.
    """
    app = RequestBodyLimitMiddleware(app, most_mb << 20)
    if token:
        app = _WithToken(app, token)
    return TrustedHostMiddleware(app, list(LOOPBACK)) if host in LOOPBACK else app


class _WithToken:
    """Lets requests pass that bring the token, and those for ``/health``."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != "/health":
            brought = Headers(scope=scope).get("authorization", "").encode()
            if not secrets.compare_digest(brought, self._expected):
                error = ServiceError("unauthorized", "expected the header Authorization: Bearer TOKEN")
                await JSONResponse(error.body, STATUS[error.kind])(scope, receive, send)
                return
        await self._app(scope, receive, send)


def listen(app: ASGIApp, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serves until SIGTERM or Ctrl-C; ``ready`` gets the address. Raises ``OSError`` where the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=STOP_SECONDS)
        ready(f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again when all is answered
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


def toolkit_version() -> str:
    """Darkroom's; 0 where it is not installed as a package."""
    try:
        return version("darkroom-toolkit")
    except PackageNotFoundError:
        return "0"
