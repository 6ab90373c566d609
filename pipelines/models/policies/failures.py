"""Meaning of a failed try of a call, and the wait before the next.

Retried: 429 (unless the credit is used up), 408, 409, 425, 5xx, timeouts, lost connections, truncated answers. Not
retried: requests that are wrong in themselves (400, 404, 422, …), a rejected key, an answer that is no completion.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Any

import aiohttp

from darkroom.pipelines.models.policies.policy import PolicyError
from darkroom.pipelines.records.digest import seed_from

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
"""Of our own waits; an endpoint may require longer ones."""


class StatusError(Exception):
    """An HTTP error as an answer. ``names``: what the endpoint calls it, its code and its type."""

    def __init__(self, text: str, status: int, headers: Mapping[str, str], names: tuple[Any, Any]) -> None:
        super().__init__(text)
        self.status, self.headers, self.names = status, headers, names


TRY_ERRORS = (StatusError, aiohttp.ClientError, PolicyError, ValueError, TimeoutError)
"""What a try may raise. ``ValueError``: a body that is not valid JSON, a request that is no UTF-8."""

_RETRIED = frozenset({408, 409, 425, 429})
_NEVER = frozenset({501, 505})
"""Not implemented, HTTP version: a retry gets the same answer."""
_BUSY = frozenset({429, 503, 529})
REJECTED_KEY = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed try."""

    text: str
    may_succeed: bool = False
    """Return whether the same request may succeed later."""
    is_busy: bool = False
    """Return whether the endpoint requires fewer calls."""
    is_endpoints: bool = False
    """Return whether the endpoint itself failed, regardless of the request."""
    is_final: bool = False
    """Return whether no further request can succeed either: the credit is used up."""
    wait_seconds: float | None = None
    """The wait that the endpoint requires."""


def failure_of(error: Exception) -> Failure:
    """The failure that one of ``TRY_ERRORS`` stands for."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, StatusError):
        return _status_failure(error)
    if isinstance(error, TimeoutError):
        return Failure("Timeout: no complete answer in time", may_succeed=True, is_endpoints=True)
    if isinstance(error, aiohttp.InvalidURL):
        return Failure(text, is_endpoints=True)
    if isinstance(error, aiohttp.ClientError):
        return Failure(text, may_succeed=True, is_endpoints=True)
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        return Failure(f"the answer was cut off ({text})", may_succeed=True, is_endpoints=True)
    if isinstance(error, PolicyError):
        return Failure(str(error), is_endpoints=True)
    return Failure(text)


def seconds_to_wait(failure: Failure, *, n_tries: int, seed: int) -> float:
    """Before the next try: the endpoint's wait, else twice as long each time; different for each call."""
    spread = seed_from("retry", seed, n_tries) / 2**31
    if failure.wait_seconds is not None:
        return failure.wait_seconds * (1 + spread / 4)  # never earlier than required, and not all at once
    longest = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** (n_tries - 1))
    return longest * (1.0 + spread) / 2.0


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from ``Retry-After-Ms`` or ``Retry-After`` (seconds or an HTTP date); None without either."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:  # neither a number nor a date
        return None


def _status_failure(error: StatusError) -> Failure:
    status = error.status
    used_up = status == 429 and "insufficient_quota" in error.names
    return Failure(
        str(error),
        may_succeed=(status in _RETRIED or status >= 500) and status not in _NEVER and not used_up,
        is_busy=status in _BUSY,
        is_endpoints=status >= 500 or status in REJECTED_KEY,
        is_final=used_up,
        wait_seconds=retry_after(error.headers),
    )


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "nan")
    except ValueError:  # a date
        return None
    return number if math.isfinite(number) and number >= 0 else None
