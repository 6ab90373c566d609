"""Why a try failed, whether another may succeed, and how long to wait before it.

Tried again: 429 (unless the credit is used up), 408, 409, 425, 5xx, timeouts, lost connections, answers that were cut
off. Not tried again: what is wrong in itself (400, 404, 422, …), a refused key, an answer that is no completion.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from json import JSONDecodeError

import aiohttp
import httpx2
import openai

from pipelines.digest import seed_from
from pipelines.policies.base import PolicyFault

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
"""Of the waits that we choose; an endpoint may ask for longer ones."""

TRY_FAULTS = (openai.APIStatusError, httpx2.HTTPError, aiohttp.ClientError, PolicyFault, ValueError, TimeoutError)
"""What a try may raise. ``ValueError``: a body that is not the JSON that it says it is, a request that is no UTF-8."""

_RETRIED = frozenset({408, 409, 425, 429})
_NEVER = frozenset({501, 505})
"""Not implemented, HTTP version: the server will say the same tomorrow."""
_BUSY = frozenset({429, 503, 529})
_REFUSED = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed try."""

    text: str
    may_succeed: bool = False
    """Whether the same request may succeed later."""
    is_busy: bool = False
    """Whether the endpoint asks for fewer calls."""
    is_endpoints: bool = False
    """Whether the endpoint itself failed, whatever it was asked."""
    is_final: bool = False
    """Whether no further request can succeed either: the credit is used up."""
    wait_seconds: float | None = None
    """How long the endpoint asks to wait."""


def failure_of(fault: Exception) -> Failure:
    """What one of ``TRY_FAULTS`` means."""
    text = f"{type(fault).__name__}: {fault}"
    if isinstance(fault, openai.APIStatusError):
        return _refusal(fault)
    if isinstance(fault, TimeoutError):
        return Failure("Timeout: no whole answer in time", may_succeed=True, is_endpoints=True)
    if isinstance(fault, httpx2.HTTPError | aiohttp.ClientError):
        return Failure(f"{text}{_cause(fault)}", may_succeed=True, is_endpoints=True)
    if isinstance(fault, JSONDecodeError | UnicodeDecodeError):
        return Failure(f"the answer was cut off ({text})", may_succeed=True, is_endpoints=True)
    if isinstance(fault, PolicyFault):
        return Failure(str(fault), is_endpoints=True)
    return Failure(text)


def seconds_to_wait(failure: Failure, *, n_tries: int, seed: int) -> float:
    """Before the next try: what the endpoint asks for, else twice as long each time; never the same for two calls."""
    share = seed_from("retry", seed, n_tries) / 2**31
    if failure.wait_seconds is not None:
        return failure.wait_seconds * (1 + share / 4)  # never earlier than asked, and not all at once
    longest = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** (n_tries - 1))
    return longest * (1.0 + share) / 2.0


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from ``Retry-After-Ms`` or ``Retry-After`` (seconds or an HTTP date); None when not said."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after")
    seconds = _number(said)
    if seconds is not None or said is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except ValueError:  # neither a number nor a date: as if nothing were said
        return None


def _refusal(fault: openai.APIStatusError) -> Failure:
    status = fault.status_code
    used_up = status == 429 and "insufficient_quota" in (fault.code, fault.type)
    return Failure(
        fault.message,
        may_succeed=(status in _RETRIED or status >= 500) and status not in _NEVER and not used_up,
        is_busy=status in _BUSY,
        is_endpoints=status >= 500 or status in _REFUSED,
        is_final=used_up,
        wait_seconds=retry_after(fault.response.headers),
    )


def _cause(fault: Exception) -> str:
    """What lies underneath: the transport calls every lost connection a timeout."""
    root: BaseException = fault
    while root.__cause__ is not None:
        root = root.__cause__
    return "" if root is fault else f" ({type(root).__name__}: {root})"


def _number(said: str | None) -> float | None:
    try:
        number = float(said or "nan")
    except ValueError:  # a date
        return None
    return number if math.isfinite(number) and number >= 0 else None
