"""Every call of one policy: through one gate, within the budget, tried again where that can help, given up in time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

from pipelines.policies.base import Completion, PolicyFault, PolicyUnavailable
from pipelines.policies.breaker import Breaker
from pipelines.policies.budget import Purse
from pipelines.policies.endpoint import Endpoint
from pipelines.policies.rate import Gate, Result
from pipelines.policies.retries import TRY_FAULTS, Failure, failure_of, seconds_to_wait
from pipelines.records import Usage

MOST_PATIENCE_SECONDS = 600.0
"""An endpoint that asks to wait longer (a day's quota is used up) stops the stage instead."""

MOST_CHARACTERS = 600
"""Of what an endpoint says when it fails: some send a page of HTML, and rejects are kept in tables."""


class Calls:
    """The calls to one endpoint. ``clean`` takes out of a text what must not be kept (the key)."""

    def __init__(self, endpoint: Endpoint, purse: Purse, clean: Callable[[str], str]) -> None:
        self.gate = Gate(endpoint.concurrency)
        self._endpoint, self._purse, self._clean = endpoint, purse, clean
        self._name = f"{endpoint.model} at {endpoint.base_url}"
        self._breaker = Breaker(self._name, most=endpoint.max_failures)
        self._stopped = asyncio.Event()

    async def make(self, send: Callable[[], Awaitable[tuple[Completion, ...]]], *, seed: int) -> tuple[Completion, ...]:
        """What ``send`` gives (one answer or several), sooner or later; ``seed`` spreads the waits between tries.

        Raises ``PolicyFault`` when this call is given up, ``PolicyUnavailable`` when all are: the endpoint is broken,
        or the budget is spent (``BudgetSpent``).
        """
        for n_tries in itertools.count(1):
            made = await self._try(send, is_retry=n_tries > 1)
            if not isinstance(made, Failure):
                return made
            if not made.may_succeed or n_tries > self._endpoint.max_retries:
                self._give_up(made)
            await self._wait_for_another(made, seconds_to_wait(made, n_tries=n_tries, seed=seed))
        raise AssertionError("tries are counted without end")

    async def _try(
        self, send: Callable[[], Awaitable[tuple[Completion, ...]]], *, is_retry: bool
    ) -> tuple[Completion, ...] | Failure:
        began = await self.gate.enter(first=is_retry)
        result: Result = "failed"
        wait_seconds = 0.0
        try:
            self._require()
            async with asyncio.timeout(self._endpoint.timeout_seconds):
                completions = await send()
            self._purse.pay(sum((completion.usage for completion in completions), Usage()))
            self._breaker.answered()
            result = "served"
            return completions
        except TRY_FAULTS as fault:
            failure = failure_of(fault)
            if failure.is_busy:
                result, wait_seconds = "busy", failure.wait_seconds or 1.0
            return replace(failure, text=self._clean(failure.text)[:MOST_CHARACTERS])
        finally:
            self.gate.leave(began, result, min(wait_seconds, MOST_PATIENCE_SECONDS))

    def _require(self) -> None:
        try:
            self._breaker.require()
            self._purse.require()
        except PolicyUnavailable:
            self._stop()
            raise

    def _give_up(self, failure: Failure) -> NoReturn:
        if failure.is_final:
            self._break(f"nothing more can be had: {failure.text}")
        if not failure.is_endpoints:
            self._breaker.answered()
        elif self._breaker.failed(failure.text):
            self._stop()
        raise PolicyFault(f"{self._name}: {failure.text}")

    async def _wait_for_another(self, failure: Failure, seconds: float) -> None:
        """Until the next try, or until there is none for anybody."""
        if (asked := failure.wait_seconds or 0.0) > MOST_PATIENCE_SECONDS:
            self._break(f"it asks to wait {asked:.0f} seconds: {failure.text}")
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    def _break(self, why: str) -> NoReturn:
        self._breaker.open(why)
        self._stop()
        self._breaker.require()
        raise AssertionError("an open breaker lets nobody pass")

    def _stop(self) -> None:
        """Wakes all who wait: each finds out by itself why there is nothing to wait for."""
        self._stopped.set()
        self.gate.reopen()
