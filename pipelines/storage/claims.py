"""Claims: who performs an act right now, so that no other process pays for it meanwhile.

    key   holder                          since         beat
    1f…   <boot>/<pid space>/812/90/7c…   1795570000.1  1795570012.3      one row per act that is being performed

A holder renews its beat every few seconds. Its claims are free again when the beat is old, and at once when the process
is seen to be dead, which only a process on the same machine can see. Who was stopped for longer than that (a suspended
machine) loses its claims while it performs: then an act may be paid twice, and the first result stays.

Times are by the clock of the database: those of its clients may differ, and be set while they hold claims.
"""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pipelines.storage.database import clock, create_table
from pipelines.storage.process_identity import DEAD_SECONDS, has_ended, new_holder

BEAT_SECONDS = 5.0

_claims = sa.Table(
    "claims",
    sa.MetaData(),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("holder", sa.String(200), nullable=False, index=True),
    sa.Column("since", sa.Float, nullable=False),
    sa.Column("beat", sa.Float, nullable=False),
)


class Claims:
    """The claims of one holder. ``take`` and ``drop`` are part of the caller's transaction."""

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

    def take(self, connection: sa.Connection, keys: Sequence[str]) -> set[str]:
        """Those of ``keys`` that are free: they are this holder's from now on."""
        mine = self._mine()
        in_order = sorted(set(keys))  # the same for all, or two that share keys would wait for each other
        taken = set(connection.scalars(self._insertion(), [{"key": key, **mine} for key in in_order]))
        others = sorted(set(keys) - taken)
        if others and (dead := self._dead_holders(connection, others)):
            of_the_dead = sa.and_(_claims.c.key.in_(others), _claims.c.holder.in_(dead))
            taken |= set(
                connection.scalars(sa.update(_claims).where(of_the_dead).values(mine).returning(_claims.c.key))
            )
        with self._lock:
            self._to_release -= taken
            if taken and self._beating is None:
                self._beating = threading.Thread(target=self._keep_beating, name="claims", daemon=True)
                self._beating.start()
        return taken

    def drop(self, connection: sa.Connection, keys: Sequence[str]) -> None:
        """Ends this holder's claims on ``keys``, those that it has."""
        if self._beating is not None:  # else it never had one
            own = sa.and_(_claims.c.key.in_(keys), _claims.c.holder == self.holder)
            connection.execute(sa.delete(_claims).where(own))

    def release(self, keys: Sequence[str]) -> None:
        """``drop`` for acts that failed. Where the database does not answer, the next beat tries again."""
        with self._lock:
            self._to_release |= set(keys)
        self._release_all()

    def close(self) -> None:
        """Ends all claims of this holder."""
        self._closed.set()
        if self._beating is not None:
            self._beating.join()
            with (
                suppress(sa.exc.SQLAlchemyError),
                self._engine.begin() as connection,
            ):  # without: they end by their beat
                connection.execute(sa.delete(_claims).where(_claims.c.holder == self.holder))

    def _mine(self) -> dict[str, Any]:
        now = self._now()
        return {"holder": self.holder, "since": now, "beat": now}

    def _read_clock(self, connection: sa.Connection) -> None:
        self._ahead = clock(connection) - time.monotonic()

    def _now(self) -> float:
        return time.monotonic() + self._ahead

    def _insertion(self) -> sa.Executable:
        insert = postgresql.insert if self._engine.dialect.name == "postgresql" else sqlite.insert
        written, old = insert(_claims), self._now() - DEAD_SECONDS
        # one's own is left from a task that was cancelled: in a process, tasks wait for each other by a lock
        is_free = sa.or_(_claims.c.beat < old, _claims.c.holder == self.holder)
        mine = {name: written.excluded[name] for name in ("holder", "since", "beat")}
        return written.on_conflict_do_update(index_elements=["key"], set_=mine, where=is_free).returning(_claims.c.key)

    def _dead_holders(self, connection: sa.Connection, keys: Sequence[str]) -> list[str]:
        query = sa.select(_claims.c.holder).distinct().where(_claims.c.key.in_(keys))
        return [holder for holder in connection.scalars(query) if has_ended(holder)]

    def _keep_beating(self) -> None:
        while not self._closed.wait(BEAT_SECONDS):
            try:
                self._release_all()
                with self._engine.begin() as connection:
                    self._read_clock(connection)
                    beat = {"beat": self._now()}
                    connection.execute(sa.update(_claims).where(_claims.c.holder == self.holder).values(beat))
            except sa.exc.SQLAlchemyError:
                continue  # the database is away: the next act meets the error, the next beat tries again

    def _release_all(self) -> None:
        with self._lock:
            keys = sorted(self._to_release)
        if keys:
            with self._engine.begin() as connection:
                self.drop(connection, keys)
            with self._lock:
                self._to_release -= set(keys)
