"""Number of calls in flight to an endpoint: found by trying, as TCP finds a line's capacity, and shared by processes.

All processes on one ledger share out the calls at an endpoint:

    endpoint              holder                        leased  demand  beat
    http://gpu:8000/v1 m  <boot>/<pid space>/812/90/7c… 11      40      1795570012.3    one row per process that calls

A process renews its row every half second. It takes only what no other row has leased, and what is beyond its fair
share it gives back as its calls end: at no time are more leased than the total. The lease of a process that was killed
is free at once for processes on its machine, and after a minute without a beat for others.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Literal

import sqlalchemy as sa

from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.storage.database import DEAD_SECONDS, clock, create_table, first_line, required, upsert
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.process_identity import has_ended, new_holder

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

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.limit = float(min(maximum, FIRST_LIMIT))
        self.leased = maximum
        """No more than these, where processes share an endpoint's calls (``SharedCalls``)."""
        self.n_in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_ramping = True
        self._n_cuts = 0
        self._was_served = True
        """Return whether a call that started after the last cut was served."""
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
        if ticket == self._n_cuts:  # else it started under an earlier, higher limit: no evidence about the current one
            if outcome == "served":
                self._raise_limit()
            elif outcome == "busy":
                self._cut_limit(wait_seconds)
        self.n_in_flight -= 1
        self._admit()

    @property
    def n_wanted(self) -> int:
        """Calls in flight and waiting."""
        return self.n_in_flight + len(self._waiting)

    def lease(self, n_calls: int) -> None:
        """Allow ``n_calls`` in flight from now on; those beyond finish."""
        self.leased = n_calls
        self._admit()

    def reopen(self) -> None:
        """Ends a pause and a lease: the waiting calls are all going to fail without a request."""
        self._closed_until = 0.0
        self.lease(self.maximum)

    def _raise_limit(self) -> None:
        self._was_served = True
        if self.n_in_flight >= int(self.limit):  # a limit that nothing reached proves nothing
            self.limit = min(float(self.maximum), self.limit + (RAMP_STEP if self._is_ramping else 1.0 / self.limit))

    def _cut_limit(self, wait_seconds: float) -> None:
        self.limit = max(1.0, min(self.limit, self.n_in_flight) * (RAMP_CUT if self._is_ramping else STEADY_CUT))
        self._is_ramping = False
        self._n_cuts += 1
        until = time.monotonic() + wait_seconds
        if not self._was_served and until > self._closed_until:
            self._closed_until = until
            asyncio.get_running_loop().call_later(wait_seconds, self._admit)
        self._was_served = False

    def _has_place(self) -> bool:
        return self.n_in_flight < min(int(self.limit), self.leased) and time.monotonic() >= self._closed_until

    def _admit(self) -> None:
        while self._waiting and self._has_place():
            if not (place := self._waiting.popleft()).done():
                place.set_result(None)
                self.n_in_flight += 1


PERIOD_SECONDS = 0.5
TURN_SECONDS = 30.0
"""Where there are fewer calls than processes, they take turns of this length."""

_leases = sa.Table(
    "call_leases",
    sa.MetaData(),
    sa.Column("endpoint", sa.String(64), primary_key=True),
    sa.Column("holder", sa.String(200), primary_key=True),
    *required(sa.Integer, "leased", "demand"),
    *required(sa.Float, "beat"),
)


def fair_shares(total: int, demands: Mapping[str, int], *, turn: int = 0) -> dict[str, int]:
    """Divide ``total`` calls so that none has less than another while it demands more; ``turn``: who is first."""
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
    """Part of this process in the ``total`` calls that may be in flight at ``endpoint``, its URL and model.

    >>> shared = SharedCalls(workspace.ledger, "http://gpu:8000/v1 qwen", 32)
    >>> shared.keep(limiter, give_up)  # from now on the limiter admits as many calls as are leased
    """

    def __init__(self, ledger: Ledger, endpoint: str, total: int) -> None:
        self.holder = new_holder()
        self._engine, self._endpoint, self._total = ledger.engine, digest(["endpoint", endpoint]), total
        self._keeping: asyncio.Task[None] | None = None
        create_table(self._engine, _leases)

    def keep(self, limiter: ConcurrencyLimiter, give_up: Callable[[str], None]) -> None:
        """Keeps the limiter's lease up to date until ``close``; does nothing when it already does. ``give_up`` is
        called with the reason when the database is away for so long that others may take the lease."""
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
        """Renew the lease of a process that holds ``held`` calls and wants ``demand``; returns its new lease. The row
        says ``held`` until a later renewal shows that those beyond the new lease have ended."""
        with self._engine.begin() as connection:
            now = clock(connection)
            own = {"endpoint": self._endpoint, "holder": self.holder, "leased": held, "demand": demand, "beat": now}
            # one renewal at a time for an endpoint; SQLite has one writer at a time, and the first statement writes
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(int(self._endpoint[:15], 16))))
            connection.execute(upsert(_leases, own, keys=("endpoint", "holder"), dialect=connection.dialect.name))
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

    def _row(self, *holders: str) -> sa.ColumnElement[bool]:
        return sa.and_(_leases.c.endpoint == self._endpoint, _leases.c.holder.in_(holders))

    def _give_back(self) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.delete(_leases).where(self._row(self.holder)))
