"""All calls to one endpoint: limited in number, within the budget, retried where that can help, given up in time."""

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Literal, NoReturn

from pipelines.models.policies.base import Completion, PolicyError, PolicyUnavailable
from pipelines.models.policies.budget import BudgetPool
from pipelines.models.policies.http_client import TRY_ERRORS, Failure, failure_of, seconds_to_wait
from pipelines.models.policies.settings import Endpoint
from pipelines.records import Usage

FIRST_LIMIT = 16
RAMP_STEP, RAMP_CUT = 0.5, 2 / 3
"""The ramp grows by half with each round, so two thirds worked before. Doubling would find a server's cap sooner, with
as many rejected calls as the cap is high."""
STEADY_CUT = 0.75

CallOutcome = Literal["served", "busy", "failed"]


class ConcurrencyLimiter:
    """An adaptive limit on the calls in flight, one for all calls of a policy.

    Additive increase, multiplicative decrease (Chiu and Jain 1989), as in TCP: the limit grows quickly until the
    endpoint first answers 429 or 503 (or ``maximum`` is reached), then by one per round of calls; each such answer cuts
    it, once for all calls that started before. Where cuts alone do not help, because calls per minute are limited and
    not concurrent ones, nothing is sent until the time that the endpoint names.

    >>> ticket = await limiter.enter()
    >>> ...  # one try
    >>> limiter.leave(ticket, "served")
    """

    def __init__(self, maximum: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.maximum = maximum
        self.limit = float(min(maximum, FIRST_LIMIT))
        self.n_in_flight = 0
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_ramping = True
        self._n_cuts = 0
        self._was_served = True
        """Whether a call that started after the last cut was served."""
        self._closed_until = 0.0

    async def enter(self, *, first: bool = False) -> int:
        """Waits for a place, ``first`` before all others that wait. Returns the ticket for ``leave``."""
        if not self._waiting and self._has_place():
            self.n_in_flight += 1
            return self._n_cuts
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if first:
            self._waiting.appendleft(place)
        else:
            self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._waiting.remove(place)
            else:  # admitted and cancelled in the same iteration of the event loop
                self.n_in_flight -= 1
                self._admit()
            raise
        return self._n_cuts

    def leave(self, ticket: int, outcome: CallOutcome, wait_seconds: float = 0.0) -> None:
        """Ends one try. ``wait_seconds``: the wait that a busy endpoint requires."""
        if outcome == "served":
            self._raise_limit(ticket)
        elif outcome == "busy":
            self._cut_limit(ticket, wait_seconds)
        self.n_in_flight -= 1
        self._admit()

    def reopen(self) -> None:
        """Ends a pause: the waiting calls are all going to fail without a request."""
        self._closed_until = 0.0
        self._admit()

    def _raise_limit(self, ticket: int) -> None:
        if ticket != self._n_cuts:
            return  # it started under an earlier, higher limit: no evidence about the current one
        self._was_served = True
        if self.n_in_flight >= int(self.limit):  # a limit that nothing reached proves nothing
            step = RAMP_STEP if self._is_ramping else 1.0 / self.limit
            self.limit = min(float(self.maximum), self.limit + step)

    def _cut_limit(self, ticket: int, wait_seconds: float) -> None:
        if ticket != self._n_cuts:
            return  # it started before the last cut, which covers it
        cut = RAMP_CUT if self._is_ramping else STEADY_CUT
        self.limit = max(1.0, min(self.limit, self.n_in_flight) * cut)
        self._is_ramping = False
        self._n_cuts += 1
        if not self._was_served:
            self._close(wait_seconds)
        self._was_served = False

    def _close(self, seconds: float) -> None:
        until = self._clock() + seconds
        if until > self._closed_until:
            self._closed_until = until
            asyncio.get_running_loop().call_later(seconds, self._admit)

    def _has_place(self) -> bool:
        return self.n_in_flight < int(self.limit) and self._clock() >= self._closed_until

    def _admit(self) -> None:
        while self._waiting and self._has_place():
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                self.n_in_flight += 1


MAX_PATIENCE_SECONDS = 600.0
"""An endpoint that names a longer wait (a day's quota is used up) stops the stage instead."""
MAX_CHARACTERS = 600
"""Of an endpoint's error text: some send a page of HTML, and rejects are stored in tables."""

Send = Callable[[], Awaitable[tuple[Completion, ...]]]


class EndpointCalls:
    """The calls to one endpoint. ``clean`` removes secrets (the key) from a text that will be stored.

    A circuit breaker: once ``endpoint.max_failures`` calls in a row were failed by the endpoint itself, after all
    retries (a 400 does not count), every further call fails at once.
    """

    def __init__(self, endpoint: Endpoint, budget_pool: BudgetPool, clean: Callable[[str], str]) -> None:
        self.limiter = ConcurrencyLimiter(endpoint.concurrency)
        self._endpoint, self._budget_pool, self._clean = endpoint, budget_pool, clean
        self._name = f"{endpoint.model} at {endpoint.base_url}"
        self._n_failures = 0
        self._broken = ""
        """Why the endpoint is given up."""
        self._stopped = asyncio.Event()

    async def make(self, send: Send, *, seed: int) -> tuple[Completion, ...]:
        """The answers that ``send`` returns, after retries; ``seed`` spreads the waits between tries.

        Raises ``PolicyError`` when this call is given up, ``PolicyUnavailable`` when all are: the endpoint is broken,
        or the budget is spent (``BudgetSpent``).
        """
        for n_tries in itertools.count(1):
            outcome = await self._try(send, is_retry=n_tries > 1)
            if not isinstance(outcome, Failure):
                return outcome
            if not outcome.may_succeed or n_tries > self._endpoint.max_retries:
                self._give_up(outcome)
            await self._wait_for_retry(outcome, seconds_to_wait(outcome, n_tries=n_tries, seed=seed))
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
            self._n_failures = 0
            outcome = "served"
            return completions
        except TRY_ERRORS as error:
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
        raise PolicyError(f"{self._name}: {failure.text}")

    async def _wait_for_retry(self, failure: Failure, seconds: float) -> None:
        """Until the next try, or until all calls are given up."""
        if (retry_after := failure.wait_seconds or 0.0) > MAX_PATIENCE_SECONDS:
            self._break(f"it requires a wait of {retry_after:.0f} seconds: {failure.text}")
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    def _break(self, reason: str) -> NoReturn:
        self._open(reason)
        raise PolicyUnavailable(self._broken)

    def _open(self, reason: str) -> None:
        """Fails all further calls."""
        self._broken = self._broken or (
            f"{self._name} is given up: {reason}. Check the endpoint, then run this again: finished calls are in the "
            "ledger and are not paid for a second time"
        )
        self._stop()

    def _stop(self) -> None:
        """Wakes all waiting calls, each of which then meets the open circuit breaker or the spent budget."""
        self._stopped.set()
        self.limiter.reopen()
