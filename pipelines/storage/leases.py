"""Leases: the process that makes a call holds its key, so that no other process pays for it meanwhile.

    key   holder                          since         beat
    1f…   <boot>/<pid space>/812/90/7c…   1795570000.1  1795570012.3      one row per call that is being made

A holder renews its beat every few seconds. Its leases are free again when the beat is old, and at once when the process
is seen to be dead, which only a process on the same machine can see. A holder that was stopped for longer (a suspended
machine) loses its leases: then a call may be paid twice, and the first result stays. Times are by the clock of the
database: clocks of its clients may differ. A batch (``batch_table.py``) holds the leases of its calls without a beat.
"""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import sqlalchemy as sa

from darkroom.pipelines.storage.database import DEAD_SECONDS, KEYS, clock, create_table, padded, required
from darkroom.pipelines.storage.process_identity import has_ended, new_holder

BEAT_SECONDS = 5.0

_claims = sa.Table(
    "claims",
    sa.MetaData(),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("holder", sa.String(200), nullable=False, index=True),
    *required(sa.Float, "since", "beat"),
)

# as text: SQLAlchemy compiles its dialects' statements with ON CONFLICT each time (their `inherit_cache` is false)
_CLAIM = sa.text(
    "INSERT INTO claims (key, holder, since, beat) VALUES (:key, :holder, :now, :now) ON CONFLICT (key) DO UPDATE "
    "SET holder = excluded.holder, since = excluded.since, beat = excluded.beat "
    # one's own is left from a task that was cancelled: in a process, tasks wait for each other by a lock
    "WHERE claims.beat < :old OR claims.holder = excluded.holder"
)
_HOLDERS = sa.select(_claims.c.key, _claims.c.holder).where(_claims.c.key.in_(KEYS))
_IN_BATCHES = sa.select(_claims.c.key).where(_claims.c.key.in_(KEYS), _claims.c.holder.startswith("batch/"))
_NEVER = 1e18
"""A beat that does not get old."""
_DROP = sa.delete(_claims).where(_claims.c.key.in_(KEYS), _claims.c.holder == sa.bindparam("own"))


class Leases:
    """The leases of one holder. ``claim`` and ``drop`` are part of the caller's transaction."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self.holder = new_holder()
        self._ahead = 0.0
        """How far the database's clock is ahead of this machine's monotonic one, seconds."""
        self._lock = threading.Lock()
        self._to_release: set[str] = set()
        self._closed = threading.Event()
        self._beating: threading.Thread | None = None
        create_table(engine, _claims)
        with engine.connect() as connection:
            self._read_clock(connection)

    def claim(self, connection: sa.Connection, keys: Sequence[str]) -> set[str]:
        """Lease the free ones among ``keys`` to this holder."""
        now = self._now()
        in_order = sorted(set(keys))  # the same for all, or two that share keys would wait for each other
        values = {"holder": self.holder, "now": now, "old": now - DEAD_SECONDS}
        connection.execute(_CLAIM, [{"key": key, **values} for key in in_order])
        holders = dict(connection.execute(_HOLDERS, {"keys": padded(in_order)}).tuples().all())
        leased = {key for key, holder in holders.items() if holder == self.holder}
        dead = [holder for holder in set(holders.values()) - {self.holder} if has_ended(holder)]
        if dead:
            of_the_dead = sa.and_(_claims.c.key.in_(in_order), _claims.c.holder.in_(dead))
            mine = {"holder": self.holder, "since": now, "beat": now}
            takeover = sa.update(_claims).where(of_the_dead).values(mine).returning(_claims.c.key)
            leased |= set(connection.scalars(takeover))
        with self._lock:
            self._to_release -= leased
            if leased and self._beating is None:
                self._beating = threading.Thread(target=self._keep_beating, name="claims", daemon=True)
                self._beating.start()
        return leased

    def drop(self, connection: sa.Connection, keys: Sequence[str]) -> None:
        """Ends this holder's leases of ``keys``, those that it has."""
        if self._beating is not None:  # else it never had one
            connection.execute(_DROP, {"keys": padded(keys), "own": self.holder})

    def in_batches(self, connection: sa.Connection, keys: Sequence[str]) -> set[str]:
        """Those among ``keys`` that batches hold."""
        return set(connection.scalars(_IN_BATCHES, {"keys": padded(keys)}))

    def hand_over(self, connection: sa.Connection, keys: Sequence[str], batch: str) -> None:
        """Make a batch the holder of this holder's ``keys``."""
        own = sa.and_(_claims.c.key.in_(keys), _claims.c.holder == self.holder)
        connection.execute(sa.update(_claims).where(own).values(holder=f"batch/{batch}", beat=_NEVER))

    def release_batch(self, connection: sa.Connection, batch: str, keys: Sequence[str] | None = None) -> None:
        """Ends the leases of a batch: all, or those of ``keys``."""
        among = sa.true() if keys is None else _claims.c.key.in_(keys)
        connection.execute(sa.delete(_claims).where(_claims.c.holder == f"batch/{batch}", among))

    def release(self, keys: Sequence[str]) -> None:
        """``drop`` for calls that failed. Where the database does not answer, the next beat tries again."""
        with self._lock:
            self._to_release |= set(keys)
        self._release_all()

    def close(self) -> None:
        self._closed.set()
        if self._beating is not None:
            self._beating.join()
            # without: they end by their beat
            with suppress(sa.exc.SQLAlchemyError), self._engine.begin() as connection:
                connection.execute(sa.delete(_claims).where(_claims.c.holder == self.holder))

    def _read_clock(self, connection: sa.Connection) -> None:
        self._ahead = clock(connection) - time.monotonic()

    def _now(self) -> float:
        return time.monotonic() + self._ahead

    def _keep_beating(self) -> None:
        while not self._closed.wait(BEAT_SECONDS):
            try:
                self._release_all()
                with self._engine.begin() as connection:
                    self._read_clock(connection)
                    beat = {"beat": self._now()}
                    connection.execute(sa.update(_claims).where(_claims.c.holder == self.holder).values(beat))
            except sa.exc.SQLAlchemyError:
                continue  # the database is away: the next call meets the error, the next beat tries again

    def _release_all(self) -> None:
        with self._lock:
            keys = sorted(self._to_release)
        if keys:
            with self._engine.begin() as connection:
                self.drop(connection, keys)
            with self._lock:
                self._to_release -= set(keys)
