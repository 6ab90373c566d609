"""All calls to one endpoint: limited in number, within the budget, retried where that can help, given up in time.

Calls in flight at one endpoint are shared out among all processes on one ledger:

    endpoint              holder                        leased  demand  beat
    http://gpu:8000/v1 m  <boot>/<pid space>/812/90/7c… 11      40      1795570012.3    one row per process that calls

A process renews its row every half second. It takes only what no other row has leased, and returns what is beyond its
fair share as its calls end: at no time are more leased than the total. The lease of a process that was killed is free
at once for processes on its machine, and after a minute without a beat for others.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

import sqlalchemy as sa
from darkroom.pipelines.storage.process_identity import DEAD_SECONDS, has_ended, new_holder
from sqlalchemy.dialects import postgresql, sqlite

from darkroom.pipelines.models.policies.budget import BudgetPool
from darkroom.pipelines.models.policies.failures import TRY_ERRORS, Failure, failure_of, seconds_to_wait
from darkroom.pipelines.models.policies.limiter import CallOutcome, ConcurrencyLimiter
from darkroom.pipelines.models.policies.policy import Completion, PolicyError, PolicyUnavailable
from darkroom.pipelines.models.policies.settings import Endpoint
from darkroom.pipelines.records import Usage
from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.storage.database import clock, create_table, first_line
from darkroom.pipelines.storage.ledger import Ledger

PERIOD_SECONDS = 0.5
TURN_SECONDS = 30.0
"""Where there are fewer calls than processes, they take turns of this length."""

_leases = sa.Table(
    "call_leases",
    sa.MetaData(),
    sa.Column("endpoint", sa.String(64), primary_key=True),
    sa.Column("holder", sa.String(200), primary_key=True),
    sa.Column("leased", sa.Integer, nullable=False),
    sa.Column("demand", sa.Integer, nullable=False),
    sa.Column("beat", sa.Float, nullable=False),
)


def fair_shares(total: int, demands: Mapping[str, int], *, turn: int = 0) -> dict[str, int]:
    """``total`` calls divided so that no holder has less than another while it demands more.

    ``turn`` says who is first where they cannot be divided evenly.
    """
    shares = dict.fromkeys(demands, 0)
    hungry = sorted((holder for holder in demands if demands[holder]), key=lambda name: seed_from("turn", turn, name))
    n_free = total
    while n_free and hungry:
        each = max(1, n_free // len(hungry))
        for holder in hungry:
            n_more = min(each, demands[holder] - shares[holder], n_free)
            shares[holder] += n_more
            n_free -= n_more
        hungry = [holder for holder in hungry if shares[holder] < demands[holder]]
    return shares


class SharedCalls:
    """This process's part of the ``total`` calls that may be in flight at ``endpoint``, its URL and model.

    >>> shared = SharedCalls(workspace.ledger, "http://gpu:8000/v1 qwen", 32)
    >>> shared.keep(limiter, give_up)  # from now on the limiter admits as many calls as are leased
    """

    def __init__(self, ledger: Ledger, endpoint: str, total: int) -> None:
        self.holder = new_holder()
        self._engine, self._endpoint, self._total = ledger.engine, digest(["endpoint", endpoint]), total
        self._keeping: asyncio.Task[None] | None = None
        create_table(self._engine, _leases)

    def keep(self, limiter: ConcurrencyLimiter, give_up: Callable[[str], None]) -> None:
        """Keeps the limiter's lease up to date until ``close``; does nothing when it already does.

        ``give_up`` is called with the reason when the database is away for so long that others may take the lease.
        """
        if self._keeping is None:
            limiter.lease(0)
            self._keeping = asyncio.create_task(self._keep(limiter, give_up))

    async def close(self) -> None:
        """Gives the lease back."""
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping
            with suppress(sa.exc.SQLAlchemyError):  # without: it ends by its beat
                await asyncio.to_thread(self._give_back)

    async def _keep(self, limiter: ConcurrencyLimiter, give_up: Callable[[str], None]) -> None:
        renewed = time.monotonic()
        while True:
            held = max(limiter.leased, limiter.n_in_flight)
            try:
                limiter.lease(await asyncio.to_thread(self.renew, held, max(1, limiter.n_wanted)))
                renewed = time.monotonic()
            except sa.exc.SQLAlchemyError as error:
                if time.monotonic() - renewed > DEAD_SECONDS / 2:
                    return give_up(f"the ledger's database does not share out its calls: {first_line(error)}")
            await asyncio.sleep(PERIOD_SECONDS)

    def renew(self, held: int, demand: int) -> int:
        """Renew the lease of a process that holds ``held`` calls and wants ``demand``; returns how many it may have
        now.

        The row says ``held`` until a later renewal shows that those beyond the new lease have ended.
        """
        with self._engine.begin() as connection:
            now = clock(connection)
            own = {"endpoint": self._endpoint, "holder": self.holder, "demand": demand, "beat": now}
            self._lock(connection)
            insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            row = insert(_leases).values(**own, leased=held)
            keys = ["endpoint", "holder"]
            connection.execute(
                row.on_conflict_do_update(index_elements=keys, set_={"leased": held, "demand": demand, "beat": now})
            )
            rows = connection.execute(sa.select(_leases).where(_leases.c.endpoint == self._endpoint)).all()
            dead = [row.holder for row in rows if row.beat < now - DEAD_SECONDS or has_ended(row.holder)]
            live = [row for row in rows if row.holder not in dead]
            shares = fair_shares(self._total, {row.holder: row.demand for row in live}, turn=int(now / TURN_SECONDS))
            free = self._total - sum(int(row.leased) for row in live if row.holder != self.holder)
            lease = min(shares[self.holder], max(free, held))
            if dead:
                connection.execute(sa.delete(_leases).where(self._row(*dead)))
            if lease > held:
                connection.execute(sa.update(_leases).where(self._row(self.holder)).values(leased=lease))
        return lease

    def _lock(self, connection: sa.Connection) -> None:
        """One renewal at a time for an endpoint; SQLite has one writer at a time, and the first statement writes."""
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(int(self._endpoint[:15], 16))))

    def _row(self, *holders: str) -> sa.ColumnElement[bool]:
        return sa.and_(_leases.c.endpoint == self._endpoint, _leases.c.holder.in_(holders))

    def _give_back(self) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.delete(_leases).where(self._row(self.holder)))


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
