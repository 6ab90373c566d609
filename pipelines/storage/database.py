"""The ledger's database: which URLs it may have, how it and its tables are opened, what is done while it is away."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from darkroom.pipelines.storage.storage_errors import sqlite_mend
from darkroom.sandbox.errors import UserError, raised_as

_PAGE_KB, _CACHE_KB, _LOG_KB = 8, 32_768, 65_536
"""Of SQLite: a page, what a connection keeps in memory, and how long the log gets before it goes into the file."""
_DAMAGED = ("file is not a database", "database disk image is malformed")
_CREATING = 0x6461726B  # any number that no other program locks
AWAY_SECONDS, _WAIT_SECONDS = 120.0, 0.5
"""How long a server that was there may be away, and how often it is asked meanwhile."""
DEAD_SECONDS = 60.0
"""Without a beat, after which a process of another machine counts as dead. A busy machine or database delays some."""
KEYS: sa.BindParameter[Any] = sa.bindparam("keys", expanding=True)
"""Of statements that are constants, so that SQLAlchemy does not derive their cache key for each execution."""
_T = TypeVar("_T")


class LedgerUnavailable(UserError):
    """The ledger's database cannot be opened."""


def parsed_url(url: str) -> sa.URL:
    """The URL of a database that a ledger can be in. Raises ``LedgerUnavailable``."""
    with raised_as(lambda error: unavailable("its URL", "it is no URL of a database"), sa.exc.ArgumentError):
        parsed = sa.make_url(url)
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise unavailable(f"a {parsed.get_backend_name()} URL", "SQLite and PostgreSQL are supported")
    return parsed


def unavailable(where: str, why: str) -> LedgerUnavailable:
    mend = sqlite_mend(why)
    if mend is not None:
        mend += ", or set DARKROOM_LEDGER to another file"
    elif any(words in why for words in _DAMAGED):
        mend = "restore a copy of it, or move the file away: what it holds is then paid for again"
    if mend is not None:
        return LedgerUnavailable(f"cannot use the ledger at {where}: {why}. To do: {mend}")
    urls = "(sqlite:///file, or postgresql+psycopg://… with the extra `postgres`), or unset it for SQLite."
    mend = f"Set DARKROOM_LEDGER to a URL that this machine can reach {urls}"
    return LedgerUnavailable(f"cannot open the ledger at {where}: {why}. {mend}")


def required(kind: Any, *names: str) -> list[sa.Column[Any]]:
    """Columns of one kind that always have a value."""
    return [sa.Column(name, kind, nullable=False) for name in names]


def create_table(engine: sa.Engine, table: sa.Table) -> None:
    """The table, unless it is there. Processes may start at once: ``create_all`` fails in all but one of them."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":  # where IF NOT EXISTS fails too when another creates it meanwhile
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATING)))
        connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
        for index in table.indexes:
            connection.execute(sa.schema.CreateIndex(index, if_not_exists=True))


def transact(engine: sa.Engine, work: Callable[[sa.Connection], _T]) -> _T:
    """Run ``work`` in a transaction of its own and return its result. It is tried again while a PostgreSQL is away, so
    it must bear being done twice: a server may be lost after it committed. Raises ``LedgerUnavailable`` after
    ``AWAY_SECONDS``."""
    deadline = time.monotonic() + AWAY_SECONDS
    while True:
        try:
            with engine.begin() as connection:
                return work(connection)
        except (sa.exc.OperationalError, sa.exc.InterfaceError) as error:
            if engine.dialect.name != "postgresql":
                raise
            if time.monotonic() > deadline:
                found = f"the ledger's database does not answer since {AWAY_SECONDS:.0f} s ({first_line(error)})"
                raise LedgerUnavailable(f"{found}: start it, then run again: finished work is kept") from error
        time.sleep(_WAIT_SECONDS)


def upsert(table: sa.Table, row: Mapping[str, Any], *, keys: Sequence[str], dialect: str) -> sa.Executable:
    """Insert a row, or replace what the one with its ``keys`` holds besides them."""
    kind: Any = postgresql if dialect == "postgresql" else sqlite
    replaced = {name: value for name, value in row.items() if name not in keys}
    insert = kind.insert(table).values(**row)
    return cast(sa.Executable, insert.on_conflict_do_update(index_elements=keys, set_=replaced))


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
