"""One chat completion over HTTP: the request, what a failed try means, and how long to wait before the next.

Requests go through the HTTP client inside OpenAI's: its ``post`` builds the same request from a dozen layers of
options, for more than twice the CPU time (docs/policies.md). HTTP errors become OpenAI's ``APIStatusError``.

Retried: 429 (unless the credit is used up), 408, 409, 425, 5xx, timeouts, lost connections, truncated answers. Not
retried: requests that are wrong in themselves (400, 404, 422, …), a rejected key, an answer that is no completion.
"""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Any

import aiohttp
import httpx2
import openai

from pipelines.models.policies.base import PolicyError
from pipelines.records.digest import seed_from


class ChatClient:
    """Chat completions of ``client``'s endpoint; ``http`` is the HTTP client inside it."""

    def __init__(self, client: openai.AsyncOpenAI, http: httpx2.AsyncClient, *, timeout_seconds: float) -> None:
        self._http, self._timeout = http, httpx2.Timeout(timeout_seconds)
        self._url = httpx2.URL(f"{str(client.base_url).rstrip('/')}/chat/completions")
        owners = {"OpenAI-Organization": client.organization, "OpenAI-Project": client.project}
        self._headers = httpx2.Headers(
            {
                "Accept": "application/json",
                "Content-Type": "application/json",
                "User-Agent": client.user_agent,
                **client.auth_headers,
                **{name: value for name, value in owners.items() if value},
            }
        )

    async def post(self, body: Mapping[str, Any]) -> Any:
        """The endpoint's answer as JSON.

        Raises ``openai.APIStatusError`` for an HTTP error, ``httpx2.HTTPError`` and ``aiohttp.ClientError`` for a lost
        connection, ``ValueError`` for a request that is no UTF-8 or an answer that is no JSON.
        """
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        request = self._http.build_request(
            "POST", self._url, content=content, headers=self._headers, timeout=self._timeout
        )
        response = await self._http.send(request)
        if response.is_success:
            return json.loads(response.content)
        raise _status_error(response)


def _status_error(response: httpx2.Response) -> openai.APIStatusError:
    try:
        body: Any = response.json()
    except ValueError:  # a proxy's page
        body = response.text.strip()
    error = body.get("error", body) if isinstance(body, dict) else body
    message = (error.get("message") if isinstance(error, dict) else None) or error
    status = f"HTTP {response.status_code}"
    return openai.APIStatusError(f"{status}: {message}" if message else status, response=response, body=error)


FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
"""Of our own waits; an endpoint may require longer ones."""

TRY_ERRORS = (openai.APIStatusError, httpx2.HTTPError, aiohttp.ClientError, PolicyError, ValueError, TimeoutError)
"""What a try may raise. ``ValueError``: a body that is not valid JSON, a request that is no UTF-8."""

_RETRIED = frozenset({408, 409, 425, 429})
_NEVER = frozenset({501, 505})
"""Not implemented, HTTP version: a retry gets the same answer."""
_BUSY = frozenset({429, 503, 529})
_REJECTED_KEY = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed try."""

    text: str
    may_succeed: bool = False
    """Whether the same request may succeed later."""
    is_busy: bool = False
    """Whether the endpoint requires fewer calls."""
    is_endpoints: bool = False
    """Whether the endpoint itself failed, regardless of the request."""
    is_final: bool = False
    """Whether no further request can succeed either: the credit is used up."""
    wait_seconds: float | None = None
    """The wait that the endpoint requires."""


def failure_of(error: Exception) -> Failure:
    """The failure that one of ``TRY_ERRORS`` stands for."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error)
    if isinstance(error, TimeoutError):
        return Failure("Timeout: no complete answer in time", may_succeed=True, is_endpoints=True)
    if isinstance(error, httpx2.HTTPError | aiohttp.ClientError):
        return Failure(f"{text}{_cause(error)}", may_succeed=True, is_endpoints=True)
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


def _status_failure(error: openai.APIStatusError) -> Failure:
    status = error.status_code
    used_up = status == 429 and "insufficient_quota" in (error.code, error.type)
    return Failure(
        error.message,
        may_succeed=(status in _RETRIED or status >= 500) and status not in _NEVER and not used_up,
        is_busy=status in _BUSY,
        is_endpoints=status >= 500 or status in _REJECTED_KEY,
        is_final=used_up,
        wait_seconds=retry_after(error.response.headers),
    )


def _cause(error: Exception) -> str:
    """The root cause: the transport reports every lost connection as a timeout."""
    root: BaseException = error
    while root.__cause__ is not None:
        root = root.__cause__
    return "" if root is error else f" ({type(root).__name__}: {root})"


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "nan")
    except ValueError:  # a date
        return None
    return number if math.isfinite(number) and number >= 0 else None
