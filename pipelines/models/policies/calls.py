"""All calls to one endpoint: limited in number, within the budget, retried where that can help, given up in time.

Retried: 429 (unless the credit is used up), 408, 409, 425, 5xx, timeouts, lost connections, truncated answers; the same
inside an HTTP 200, and empty answers without tokens. Not retried: requests that are wrong in themselves (400, 404,
422, …), a rejected key, an answer that is no completion.
"""

import asyncio
import itertools
import json
import math
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import NoReturn

from darkroom.pipelines.models.policies.budget import BudgetPool
from darkroom.pipelines.models.policies.limiter import CallOutcome, ConcurrencyLimiter, SharedCalls
from darkroom.pipelines.models.policies.policy import Completion, NoAnswer, PolicyError, PolicyUnavailable, StatusError
from darkroom.pipelines.models.policies.settings import Endpoint
from darkroom.pipelines.records import Usage
from darkroom.pipelines.records.digest import seed_from

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
"""Of our own waits; an endpoint may require longer ones."""


TRY_ERRORS = (StatusError, NoAnswer, PolicyError, ValueError, TimeoutError)
"""What a try may raise. ``ValueError``: a request that is no UTF-8."""

_RETRIED = frozenset({408, 409, 425, 429})
_NEVER = frozenset({501, 505})
"""Not implemented, HTTP version: a retry gets the same answer."""
_BUSY = frozenset({429, 503, 529})
REJECTED_KEY = frozenset({401, 403})
_REFUSED = frozenset({400, 404, 405, 415, 422})


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
    is_refused: bool = False
    """Return whether the endpoint rejects the request as it is written."""
    is_final: bool = False
    """Return whether no further request can succeed either: the credit is used up."""
    wait_seconds: float | None = None
    """The wait that the endpoint requires."""


def failure_of(error: Exception) -> Failure:
    """The failure that one of ``TRY_ERRORS`` stands for."""
    if isinstance(error, StatusError):
        status = error.status
        return Failure(
            str(error),
            may_succeed=(status in _RETRIED or status >= 500) and status not in _NEVER and not error.is_used_up,
            is_busy=status in _BUSY,
            is_endpoints=status >= 500 or status in REJECTED_KEY,
            is_refused=status in _REFUSED,
            is_final=error.is_used_up,
            wait_seconds=retry_after(error.headers),
        )
    if isinstance(error, NoAnswer | TimeoutError):
        return Failure(str(error) or "Timeout: no complete answer in time", may_succeed=True, is_endpoints=True)
    if isinstance(error, PolicyError):
        return Failure(str(error), is_endpoints=True)
    return Failure(f"{type(error).__name__}: {error}")


def seconds_to_wait(failure: Failure, *, n_tries: int, seed: int) -> float:
    """Seconds before the next try: the endpoint's wait, else twice as long each time; different for each call."""
    spread = seed_from("retry", seed, n_tries) / 2**31
    if failure.wait_seconds is not None:
        return failure.wait_seconds * (1 + spread / 4)  # never earlier than required, and not all at once
    return min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** (n_tries - 1)) * (1.0 + spread) / 2.0


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from ``Retry-After-Ms`` or ``Retry-After`` (seconds or an HTTP date); None without either."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    if (seconds := _number(text)) is not None or text is None:
        return seconds
    with suppress(ValueError):  # neither a number nor a date
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "nan")
    except ValueError:  # a date
        return None
    return number if math.isfinite(number) and number >= 0 else None


MAX_REFUSALS = 20
MAX_REFUSALS_OF_A_FIELD = 5
"""Refusals in the same words, before any call is served, after which the endpoint refuses the request and not a row."""
_FIELD = re.compile(r"\b(max_tokens|temperature|top_p|seed|stop|response_format)\b")
_ABOUT_FIELDS = re.compile(r"parameter|argument|support|permitted|allowed|unrecogni[sz]ed|unexpected", re.IGNORECASE)


def _remedy(field: str, text: str) -> str:
    """The setting that leaves ``field`` out of requests, or renames it as ``text`` says."""
    more = {"max_completion_tokens": 4096} if field == "max_tokens" and "max_completion_tokens" in text else {}
    return f"DARKROOM_POLICY_EXTRA='{json.dumps({field: None, **more})}' (or …_JUDGE_EXTRA, …) leaves it out"


MAX_PATIENCE_SECONDS = 600.0
"""An endpoint that names a longer wait (a day's quota is used up) stops the stage instead."""
MAX_CHARACTERS = 600
"""Of an endpoint's error text: some send a page of HTML, and rejects are stored in tables."""

Send = Callable[[], Awaitable[tuple[Completion, ...]]]


class EndpointCalls:
    """The calls to one endpoint; ``clean`` removes secrets (the key) from a text that will be stored. A circuit
    breaker: once ``endpoint.max_failures`` calls in a row were failed by the endpoint itself, after all retries, every
    further call fails at once; so it does once the first calls of all were refused with one sentence."""

    def __init__(
        self, endpoint: Endpoint, budget_pool: BudgetPool, clean: Callable[[str], str], shared: SharedCalls | None
    ) -> None:
        self.limiter = ConcurrencyLimiter(endpoint.concurrency)
        self._shared = shared
        self._endpoint, self._budget_pool, self._clean = endpoint, budget_pool, clean
        self._name = f"{endpoint.model} at {endpoint.base_url}"
        self._n_failures = 0
        self._refusals: Counter[str] | None = Counter()
        """Refusals by their words without numbers, until a call is served."""
        self._broken = ""
        """Why the endpoint is given up."""
        self._stopped = asyncio.Event()

    async def make(self, send: Send, *, seed: int) -> tuple[Completion, ...]:
        """The answers that ``send`` returns, after retries; ``seed`` spreads the waits between tries. Raises
        ``PolicyError`` when this call is given up, ``PolicyUnavailable`` for a broken endpoint, ``BudgetSpent``."""
        if self._shared is not None:
            self._shared.keep(self.limiter, self._open)
        for n_tries in itertools.count(1):
            outcome = await self._try(send, is_retry=n_tries > 1)
            if not isinstance(outcome, Failure):
                return outcome
            if not outcome.may_succeed or n_tries > self._endpoint.max_retries:
                self._give_up(outcome)
            if (required := outcome.wait_seconds or 0.0) > MAX_PATIENCE_SECONDS:
                self._break(f"it requires a wait of {required:.0f} seconds: {outcome.text}")
            with suppress(TimeoutError):  # until the next try, or until all calls are given up
                async with asyncio.timeout(seconds_to_wait(outcome, n_tries=n_tries, seed=seed)):
                    await self._stopped.wait()
        raise AssertionError("tries are counted without end")

    async def _try(self, send: Send, *, is_retry: bool) -> tuple[Completion, ...] | Failure:
        ticket = await self.limiter.enter(first=is_retry)
        outcome: CallOutcome = "failed"
        wait_seconds = 0.0
        try:
            self._require()
            async with asyncio.timeout(self._endpoint.timeout_seconds):
                completions = await send()
            self._budget_pool.pay(sum((completion.usage for completion in completions), Usage()))
            self._n_failures, self._refusals = 0, None
            outcome = "served"
            return completions
        except TRY_ERRORS as error:
            if isinstance(error, StatusError) and error.usage.calls:
                self._budget_pool.pay(error.usage)
            failure = failure_of(error)
            if failure.is_busy:
                outcome, wait_seconds = "busy", failure.wait_seconds or 1.0
            return replace(failure, text=self._clean(failure.text)[:MAX_CHARACTERS])
        finally:
            self.limiter.leave(ticket, outcome, min(wait_seconds, MAX_PATIENCE_SECONDS))

    def _require(self) -> None:
        if self._broken:
            raise PolicyUnavailable(self._broken)
        try:
            self._budget_pool.require()
        except PolicyUnavailable:
            self._stop()
            raise

    def _give_up(self, failure: Failure) -> NoReturn:
        if failure.is_final:
            self._break(f"no further request can succeed: {failure.text}")
        self._n_failures = self._n_failures + 1 if failure.is_endpoints else 0
        if self._n_failures >= self._endpoint.max_failures:
            self._open(f"{self._n_failures} calls in a row failed, the last one with {failure.text}")
        if failure.is_refused and self._refusals is not None:
            self._count_refusal(failure.text, self._refusals)
        raise PolicyError(f"{self._name}: {failure.text}")

    def _count_refusal(self, text: str, refusals: Counter[str]) -> None:
        words = re.sub(r"\d+", "", text)
        field = _FIELD.search(text) if _ABOUT_FIELDS.search(text) else None
        refusals[words] += 1
        if refusals[words] >= (MAX_REFUSALS_OF_A_FIELD if field else MAX_REFUSALS):
            remedy = f". {_remedy(field[1], text)}" if field else ""
            self._break(f"it refused the first {refusals[words]} requests: {text.removesuffix('.')}{remedy}")

    def _break(self, reason: str) -> NoReturn:
        self._open(reason)
        raise PolicyUnavailable(self._broken)

    def _open(self, reason: str) -> None:
        """Fails all further calls."""
        self._broken = self._broken or (
            f"{self._name} is given up: {reason}. Check the endpoint (darkroom policy check says which settings fit), "
            "then run this again: finished calls are in the ledger and are not paid for a second time"
        )
        self._stop()

    def _stop(self) -> None:
        """Wakes all waiting calls, each of which then meets the open circuit breaker or the spent budget."""
        self._stopped.set()
        self.limiter.reopen()
