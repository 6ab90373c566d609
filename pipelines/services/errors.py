"""Errors of a service: each has a type that a client can act upon."""

from typing import Literal

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from darkroom.sandbox.errors import UserError

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


def invalid(error: ValidationError | RequestValidationError, *, of: str = "the request") -> ServiceError:
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
