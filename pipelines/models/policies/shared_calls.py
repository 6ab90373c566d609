"""Calls in flight at one endpoint, shared out among all processes on one ledger.

    endpoint              holder                        leased  demand  beat
    http://gpu:8000/v1 m  <boot>/<pid space>/812/90/7c… 11      40      1795570012.3    one row per process that calls

A process renews its row every half second. It takes only what no other row has leased, and what is beyond its fair
share it gives back as its calls end: at no time are more leased than the total. The lease of a process that was killed
is free at once for processes on its machine, and after a minute without a beat for others.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from darkroom.pipelines.models.policies.limiter import ConcurrencyLimiter
from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.storage.database import clock, create_table, first_line
from darkroom.pipelines.storage.leases import DEAD_SECONDS
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.process_identity import has_ended, new_holder

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
    """Divide ``total`` calls so that no holder has less than another while it demands more.

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
        """Renew the lease of a process that holds ``held`` calls and wants ``demand``; returns its new lease.

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
