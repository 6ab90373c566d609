"""All calls to one endpoint: limited in number, within the budget, retried where that can help, given up in time."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

from darkroom.pipelines.models.policies.budget import BudgetPool
from darkroom.pipelines.models.policies.failures import TRY_ERRORS, Failure, failure_of, seconds_to_wait
from darkroom.pipelines.models.policies.limiter import CallOutcome, ConcurrencyLimiter
from darkroom.pipelines.models.policies.policy import Completion, PolicyError, PolicyUnavailable
from darkroom.pipelines.models.policies.settings import Endpoint
from darkroom.pipelines.models.policies.shared_calls import SharedCalls
from darkroom.pipelines.records import Usage

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

    def __init__(
        self,
        endpoint: Endpoint,
        budget_pool: BudgetPool,
        clean: Callable[[str], str],
        shared: SharedCalls | None = None,
    ) -> None:
        self.limiter = ConcurrencyLimiter(endpoint.concurrency)
        self._shared = shared
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
        if self._shared is not None:
            self._shared.keep(self.limiter, self._open)
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
