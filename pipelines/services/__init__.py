"""Darkroom as a service, for programs that are not part of it: the sandbox over MCP and over plain HTTP.

A client opens a session with a task's images and gets its name, a secret. Tools run in it as they do in process: the
same pool, the same texts, the same pixels. Needs the extra ``serve``. What all services share (addresses, errors,
files, what clients hold open) is here as well; the others: ``darkroom.train.agent``, ``darkroom.train.environment``.
"""

import os
import secrets
from typing import TYPE_CHECKING, Literal

from darkroom.sandbox.errors import UserError

if TYPE_CHECKING:
    from fastapi.exceptions import RequestValidationError
    from pydantic import ValidationError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN_VARIABLE = "DARKROOM_SERVICE_TOKEN"


def token_for(host: str) -> str:
    """The environment's token. Raises ``UserError`` without one where other machines are admitted."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if host not in LOOPBACK and not token:
        raise UserError(f"--host {host} admits other machines: set {TOKEN_VARIABLE} to a secret of your own")
    return token


def is_let_in(*brought: str, token: str) -> bool:
    """Return whether a client that brought these words has the token (empty: everybody has), in constant time."""
    return not token or any(secrets.compare_digest(word.encode(), token.encode()) for word in brought)


WrongRequest = Literal["unauthorized", "invalid_request", "request_too_large", "unreadable_image"]
Kind = Literal[WrongRequest, "unknown_session", "unknown_tool", "too_busy", "infrastructure_failed"]
STATUS: dict[Kind, int] = {
    "unauthorized": 401,
    "invalid_request": 422,
    "request_too_large": 413,
    "unreadable_image": 422,
    "unknown_session": 404,
    "unknown_tool": 404,
    "too_busy": 429,
    "infrastructure_failed": 503,
}
"""``too_busy``: nothing happened, ask again. ``infrastructure_failed``: the session is gone, through no program."""


class ServiceError(UserError):
    """An error with its type."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def body(self) -> dict[str, dict[str, str]]:
        """JSON body: ``{"error": {"type": …, "message": …}}``."""
        return {"error": {"type": self.kind, "message": str(self)}}


def invalid(error: "ValidationError | RequestValidationError", *, of: str = "the request") -> ServiceError:
    """The error that pydantic found deepest, and where; what was sent is not repeated: it may be images."""
    first = max(error.errors(), key=lambda found: len(found["loc"]))
    match first:
        case {"type": "json_invalid", "loc": ("body", position), "ctx": {"error": reason}}:
            return ServiceError("invalid_request", f"the body is no JSON: {reason} (character {position})")
        case {"loc": ("body",)}:
            return ServiceError(
                "invalid_request", "expected a JSON object as body, with Content-Type: application/json"
            )
    where = ".".join(str(part) for part in first["loc"] if part != "body")[:100]
    return ServiceError("invalid_request", f"{where or of}: {first['msg'].removeprefix('Value error, ')}")
