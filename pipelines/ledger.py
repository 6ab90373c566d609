"""The ledger: every paid or slow act, once, keyed by the digest of all that determines it.

An act is a policy's turn, a judge's vote, a sandbox run. Its result is durable before its row counts as done, so a run
killed at any moment pays for nothing twice: the next run finds the act here. SQLite by default, PostgreSQL by URL
(``postgresql+psycopg://…``, extra ``postgres``). The ledger outlives runs, tables and recipes; it is also the one
place where measured times are kept.

What many tasks read or write at the same moment is one statement and one transaction, in a thread (group commit):
hundreds of calls in flight don't wait for hundreds of commits, and the event loop waits for none.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary, WeakValueDictionary

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pipelines.batches import Batches
from pipelines.digest import digest

_metadata = sa.MetaData()
_acts = sa.Table(
    "acts",
    _metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False, index=True),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("result", sa.Text, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("cost_usd", sa.Float, nullable=False),
    sa.Column("made_at", sa.String(32), nullable=False),
)

_CREATING = 0x6461726B  # any number that nobody else locks


class LedgerUnavailable(Exception):
    """The ledger's database cannot be opened."""


@dataclass(frozen=True, slots=True)
class Act:
    """What an act gave, what it took, what it cost."""

    result: Mapping[str, Any]
    seconds: float = 0.0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Totals:
    """The acts of one kind, added up."""

    acts: int
    seconds: float
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """An act as the ledger holds it. ``made_at``: UTC, ISO 8601."""

    key: str
    kind: str
    request: Mapping[str, Any]
    act: Act
    made_at: str


class _Entry(NamedTuple):
    """An act to be written."""

    key: str
    kind: str
    request: Mapping[str, Any]
    act: Act


class _Line(NamedTuple):
    """One event loop's way to the database."""

    reads: Batches[str, Act | None]
    writes: Batches[_Entry, Act]


class Ledger:
    """Acts by key.

    >>> with Ledger("sqlite:///data/ledger.sqlite") as ledger:
    ...     act = await ledger.once("policy", request, call)  # calls only if nobody has before
    """

    def __init__(self, url: str) -> None:
        self.url = _parsed(url)
        self._performing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._threads = ThreadPoolExecutor(2, "ledger")
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()
        try:
            self._engine = _engine(self.url)
            create_table(self._engine, _acts)
        except (sa.exc.SQLAlchemyError, ImportError) as fault:
            raise _unavailable(self.url.set(query={}).render_as_string(), _first_line(fault)) from fault

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def engine(self) -> sa.Engine:
        """The database, for what is kept beside the acts (``pipelines/policies/account.py``)."""
        return self._engine

    def close(self) -> None:
        """Finishes what is being written and closes every connection."""
        self._threads.shutdown()
        self._engine.dispose()

    def get(self, key: str) -> Act | None:
        """The act made under ``key``, if one was."""
        return self._read([key])[0]

    def put(self, key: str, kind: str, request: Mapping[str, Any], act: Act) -> Act:
        """Makes ``act`` durable and returns the act of record: the first one written under ``key`` stays."""
        return self._write([_Entry(key, kind, request, act)])[0]

    async def once(self, kind: str, request: Mapping[str, Any], perform: Callable[[], Awaitable[Act]]) -> Act:
        """The act that ``request`` determines: from the ledger, or performed now and written before it is returned.

        Who asks for an act that is being performed in this process waits for it; if it fails, the next one tries.
        """
        key, line = act_key(kind, request), self._line()
        async with self._performing.setdefault(key, asyncio.Lock()):
            found = await line.reads.ask(key)
            if found is not None:
                return found
            return await line.writes.ask(_Entry(key, kind, request, await perform()))

    async def all_of(
        self,
        kind: str,
        requests: Sequence[Mapping[str, Any]],
        perform: Callable[[Sequence[int]], Awaitable[Mapping[int, Act]]],
    ) -> list[Act]:
        """As ``once`` for several requests at a time.

        ``perform`` is given the places of those that are not on record, performs one or more of them, and is asked
        again until none is left. What it made before it raised stays on record.
        """
        keys, line = [act_key(kind, request) for request in requests], self._line()
        async with AsyncExitStack() as held:
            for key in sorted(set(keys)):  # one order for all, or two that share keys would wait for each other
                await held.enter_async_context(self._performing.setdefault(key, asyncio.Lock()))
            acts = {place: act for place, act in enumerate(await line.reads.ask_all(keys)) if act is not None}
            while missing := [place for place in range(len(keys)) if place not in acts]:
                made = await perform(missing)
                entries = [_Entry(keys[place], kind, requests[place], act) for place, act in made.items()]
                acts |= zip(made, await line.writes.ask_all(entries), strict=True)
        return [acts[place] for place in range(len(keys))]

    def look_up(self, keys: Sequence[str]) -> dict[str, Recorded]:
        """Those of ``keys`` that are on record, with what was asked and when."""
        return {found.key: found for found in self._recorded(_acts.c.key.in_(keys))}

    def with_seeds(self, kind: str, seeds: Sequence[int]) -> list[Recorded]:
        """The acts of a kind whose request names one of ``seeds``, oldest first. Reads all acts of the kind."""
        if self.url.get_backend_name() == "postgresql":
            # its JSON functions refuse a whole act for one escaped NUL or lone surrogate in what a model wrote
            among = "|".join(map(str, seeds)) or "none"
            names_one: sa.ColumnElement[bool] = _acts.c.request.regexp_match(f'"seed": ({among})[,}}]')
        else:
            names_one = sa.func.json_extract(_acts.c.request, "$.seed").in_(seeds)
        found = self._recorded(sa.and_(_acts.c.kind == kind, names_one))
        return sorted((act for act in found if act.request.get("seed") in seeds), key=lambda act: act.made_at)

    def _recorded(self, condition: sa.ColumnElement[bool]) -> list[Recorded]:
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(_acts).where(condition)).all()
        return [
            Recorded(
                row.key,
                row.kind,
                json.loads(row.request),
                Act(json.loads(row.result), row.seconds, row.cost_usd),
                row.made_at,
            )
            for row in rows
        ]

    def totals(self) -> dict[str, Totals]:
        """Count, seconds and cost of the acts of each kind."""
        columns = (sa.func.count(), sa.func.sum(_acts.c.seconds), sa.func.sum(_acts.c.cost_usd))
        query = sa.select(_acts.c.kind, *columns).group_by(_acts.c.kind).order_by(_acts.c.kind)
        with self._engine.connect() as connection:
            return {kind: Totals(n, seconds, cost) for kind, n, seconds, cost in connection.execute(query)}

    def _line(self) -> _Line:
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None:
            line = _Line(Batches(self._read, self._threads), Batches(self._write, self._threads))
            self._lines[loop] = line
        return line

    def _read(self, keys: Sequence[str]) -> list[Act | None]:
        query = sa.select(_acts.c.key, _acts.c.result, _acts.c.seconds, _acts.c.cost_usd).where(_acts.c.key.in_(keys))
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
        found = {key: Act(json.loads(result), seconds, cost) for key, result, seconds, cost in rows}
        return [found.get(key) for key in keys]

    def _write(self, entries: Sequence[_Entry]) -> list[Act]:
        """All in one transaction. The acts of record, in the entries' order."""
        insert = postgresql.insert if self.url.get_backend_name() == "postgresql" else sqlite.insert
        # RETURNING says which rows were written; drivers disagree about what `rowcount` means here
        statement = insert(_acts).on_conflict_do_nothing().returning(_acts.c.key)
        with self._engine.begin() as connection:
            written = set(connection.scalars(statement, [_values(entry) for entry in entries]))
        return [entry.act if entry.key in written else self._first(entry.key) for entry in entries]

    def _first(self, key: str) -> Act:
        first = self.get(key)
        assert first is not None, f"the ledger lost {key} between two statements"
        return first


def _values(entry: _Entry) -> dict[str, Any]:
    return {
        "key": entry.key,
        "kind": entry.kind,
        "request": json.dumps(entry.request, sort_keys=True),  # ASCII: a model may write what no database takes
        "result": json.dumps(entry.act.result, sort_keys=True),
        "seconds": entry.act.seconds,
        "cost_usd": entry.act.cost_usd,
        "made_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }


def act_key(kind: str, request: Mapping[str, Any]) -> str:
    """The key of an act: the digest of its kind and of all that determines it."""
    return digest({"kind": kind, "request": request})


def _parsed(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as fault:
        raise _unavailable("its URL", "it is no URL of a database") from fault
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise _unavailable(f"a {parsed.get_backend_name()} URL", "SQLite and PostgreSQL are supported")
    return parsed


def _unavailable(where: str, why: str) -> LedgerUnavailable:
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


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True)
    engine = sa.create_engine(url, connect_args={"timeout": 60})

    @sa.event.listens_for(engine, "connect")
    def _pragmas(connection: Any, _record: Any) -> None:
        # WAL with NORMAL survives the death of the process at any moment, and is 20 times as fast as FULL
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _first_line(fault: Exception) -> str:
    return str(fault).splitlines()[0]
