"""The ledger's database: its URLs, how it and its tables are opened, what is done while it is away; leases of calls.

The process that makes a call holds its key, so that no other process pays for it meanwhile:

    key   holder                          since         beat
    1f…   <boot>/<pid space>/812/90/7c…   1795570000.1  1795570012.3      one row per call that is being made

A holder renews its beat every few seconds. Its leases are free again when the beat is old, and at once when the process
is seen to be dead, which only a process on the same machine can see. A holder that was stopped for longer (a suspended
machine) loses its leases: then a call may be paid twice, and the first result stays. Times are by the clock of the
database: clocks of its clients may differ.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from darkroom.pipelines.storage.process_identity import has_ended, new_holder
from darkroom.pipelines.storage.storage_errors import sqlite_mend
from darkroom.sandbox.errors import UserError

_PAGE_KB, _CACHE_KB, _LOG_KB = 8, 32_768, 65_536
"""Of SQLite: a page, what a connection keeps in memory, and how long the log gets before it goes into the file."""
_DAMAGED = ("file is not a database", "database disk image is malformed")
_CREATING = 0x6461726B  # any number that no other program locks
AWAY_SECONDS, _WAIT_SECONDS = 120.0, 0.5
"""How long a server that was there may be away, and how often it is asked meanwhile."""
KEYS: sa.BindParameter[Any] = sa.bindparam("keys", expanding=True)
"""Of statements that are constants, so that SQLAlchemy does not derive their cache key for each execution."""
_T = TypeVar("_T")


class LedgerUnavailable(UserError):
    """The ledger's database cannot be opened."""


def parsed_url(url: str) -> sa.URL:
    """The URL of a database that a ledger can be in. Raises ``LedgerUnavailable``."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
        raise unavailable("its URL", "it is no URL of a database") from error
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise unavailable(f"a {parsed.get_backend_name()} URL", "SQLite and PostgreSQL are supported")
    return parsed


def unavailable(where: str, why: str) -> LedgerUnavailable:
    """The error, and what to set."""
    mend = sqlite_mend(why)
    if mend is not None:
        return LedgerUnavailable(
            f"cannot use the ledger at {where}: {why}. To do: {mend}, or set DARKROOM_LEDGER to another file"
        )
    if any(words in why for words in _DAMAGED):
        return LedgerUnavailable(
            f"cannot use the ledger at {where}: {why}. To do: restore a copy of it, or move the file away: what it "
            "holds is then paid for again"
        )
    return LedgerUnavailable(
        f"cannot open the ledger at {where}: {why}. Set DARKROOM_LEDGER to a URL that this machine can reach "
        "(sqlite:///file, or postgresql+psycopg://… with the extra `postgres`), or unset it for SQLite."
    )


def create_table(engine: sa.Engine, table: sa.Table) -> None:
    """The table, unless it is there. Processes may start at once: ``create_all`` fails in all but one of them."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":  # where IF NOT EXISTS fails too when another creates it meanwhile
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATING)))
        connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
        for index in table.indexes:
            connection.execute(sa.schema.CreateIndex(index, if_not_exists=True))


def transact(engine: sa.Engine, work: Callable[[sa.Connection], _T]) -> _T:
    """Run ``work`` in a transaction of its own and return its result.

    While a PostgreSQL is away, as when it is started again, it is tried again: ``work`` bears being done twice, since a
    server may be lost after it committed. Raises ``LedgerUnavailable`` after ``AWAY_SECONDS``.
    """
    deadline = time.monotonic() + AWAY_SECONDS
    while True:
        try:
            with engine.begin() as connection:
                return work(connection)
        except (sa.exc.OperationalError, sa.exc.InterfaceError) as error:
            if engine.dialect.name != "postgresql":
                raise
            if time.monotonic() > deadline:
                raise LedgerUnavailable(
                    f"the ledger's database does not answer since {AWAY_SECONDS:.0f} s ({first_line(error)}): start "
                    "it, then run again: finished work is kept"
                ) from error
        time.sleep(_WAIT_SECONDS)


def upsert(table: sa.Table, row: Mapping[str, Any], *, keys: Sequence[str], dialect: str) -> sa.Executable:
    """Insert a row, or replace what the one with its ``keys`` holds besides them."""
    kind: Any = postgresql if dialect == "postgresql" else sqlite
    replaced = {name: value for name, value in row.items() if name not in keys}
    insert = kind.insert(table).values(**row)
    statement: sa.Executable = insert.on_conflict_do_update(index_elements=keys, set_=replaced)
    return statement


def padded(keys: Sequence[str]) -> list[str]:
    """Pad keys to the next power of two: the driver keeps 128 statements, and one of each length would be 100 MB."""
    n_more = (1 << (len(keys) - 1).bit_length()) - len(keys)
    return [*keys, *[keys[0]] * n_more]


def clock(connection: sa.Connection) -> float:
    """Seconds since 1970 by the database's clock: those of its clients may differ."""
    if connection.dialect.name != "postgresql":
        return time.time()  # SQLite has the clock of this machine
    return float(connection.scalars(sa.text("SELECT extract(epoch FROM clock_timestamp())::float")).one())


def open_engine(url: sa.URL) -> sa.Engine:
    """The way to the database; SQLite with the settings that many processes and large ledgers need."""
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True)
    engine = sa.create_engine(_readable(url), connect_args={"timeout": 60})

    @sa.event.listens_for(engine, "connect")
    def _pragmas(connection: Any, _record: Any) -> None:
        # three acts of 2.4 KB fill a page of 8 KB, one a page of 4; a ledger that is there keeps its own
        connection.execute(f"PRAGMA page_size={_PAGE_KB * 1024}")
        # WAL with NORMAL survives the death of the process at any moment, and is 20 times as fast as FULL
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        # keys are random: in a large ledger every act of a transaction dirties an index page of its own. They have no
        # room in SQLite's own 2 MB, and would be written more than once (docs/figures.md)
        connection.execute(f"PRAGMA cache_size={-_CACHE_KB}")
        connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_KB // _PAGE_KB}")

    return engine


def _readable(url: sa.URL) -> sa.URL:
    """Open read-only if the ledger's folder is not writable. There SQLite opens it only as a file that does not change,
    and then does not see what is in a log beside it."""
    path = Path(url.database or "")
    if not path.is_file() or os.access(path.parent, os.W_OK):
        return url
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return url
    return url.set(database=f"file:{quote(str(path))}", query={"mode": "ro", "immutable": "1", "uri": "true"})


def first_line(error: Exception) -> str:
    """Without the statement and its values."""
    return str(error).splitlines()[0]


BEAT_SECONDS = 5.0

_claims = sa.Table(
    "claims",
    sa.MetaData(),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("holder", sa.String(200), nullable=False, index=True),
    sa.Column("since", sa.Float, nullable=False),
    sa.Column("beat", sa.Float, nullable=False),
)

# as text: SQLAlchemy compiles its dialects' statements with ON CONFLICT each time (their `inherit_cache` is false)
_CLAIM = sa.text(
    "INSERT INTO claims (key, holder, since, beat) VALUES (:key, :holder, :now, :now) ON CONFLICT (key) DO UPDATE "
    "SET holder = excluded.holder, since = excluded.since, beat = excluded.beat "
    # one's own is left from a task that was cancelled: in a process, tasks wait for each other by a lock
    "WHERE claims.beat < :old OR claims.holder = excluded.holder"
)
_HOLDERS = sa.select(_claims.c.key, _claims.c.holder).where(_claims.c.key.in_(KEYS))
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

    def release(self, keys: Sequence[str]) -> None:
        """``drop`` for calls that failed. Where the database does not answer, the next beat tries again."""
        with self._lock:
            self._to_release |= set(keys)
        self._release_all()

    def close(self) -> None:
        """Ends all leases of this holder."""
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


DEAD_SECONDS = 60.0
"""Without a beat, after which a process of another machine counts as dead. A busy machine or database delays some."""
