"""The ledger: every paid or slow act, once, keyed by the digest of all that determines it.

An act is a policy's turn, a judge's vote, a sandbox run. Its result is durable before its row counts as done, so a run
killed at any moment pays for nothing twice: the next run finds the act here. SQLite by default, PostgreSQL by URL
(``postgresql+psycopg://…``, extra ``postgres``). The ledger outlives runs, tables and recipes; it is also the one
place where measured times are kept.

What many tasks read or write at the same moment is one statement and one transaction, in a thread (group commit):
hundreds of calls in flight don't wait for hundreds of commits, and the event loop waits for none.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, Self, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pipelines.records.digest import digest
from pipelines.storage.database import create_table, first_line, open_engine, parsed_url, unavailable
from pipelines.storage.ledger_requests import Batches, Seeded, all_finished, spelled

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

T = TypeVar("T")
_MOST_KEYS = 8_192
"""SQLite takes at most 32,766 values in a statement."""


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
    """An act to be written. ``request``: as it is kept."""

    key: str
    kind: str
    request: str
    act: Act


class _Line(NamedTuple):
    """One event loop's way to the database."""

    reads: Batches[Sequence[str], list[Act | None]]
    writes: Batches[Sequence[_Entry], list[Act]]


class Ledger:
    """Acts by key.

    >>> with Ledger("sqlite:///data/ledger.sqlite") as ledger:
    ...     act = await ledger.once("policy", request, call)  # calls only if the ledger has no act of this request
    """

    def __init__(self, url: str) -> None:
        self.url = parsed_url(url)
        self._performing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._threads = ThreadPoolExecutor(2, "ledger")
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()
        try:
            self._engine = open_engine(self.url)
            create_table(self._engine, _acts)
        except (sa.exc.SQLAlchemyError, ImportError) as error:
            raise unavailable(self.url.set(query={}).render_as_string(), first_line(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def engine(self) -> sa.Engine:
        """The database, for what is kept beside the acts (``pipelines/models/policies/budget.py``)."""
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
        return self._write([_Entry(key, kind, spelled(request), act)])[0]

    async def has(self, kind: str, request: Mapping[str, Any]) -> bool:
        """Whether the act that ``request`` determines was made."""
        (act,) = await self._line().reads.ask([act_key(kind, request)])
        return act is not None

    async def once(self, kind: str, request: Mapping[str, Any], perform: Callable[[], Awaitable[Act]]) -> Act:
        """The act that ``request`` determines: from the ledger, or performed now and written before it is returned.

        Who asks for an act that is being performed in this process waits for it; if it fails, the next one tries.
        """
        return await self._once(act_key(kind, request), kind, partial(spelled, request), perform)

    async def each_of(
        self, kind: str, request: Mapping[str, Any], seeds: Sequence[int], perform: Callable[[int], Awaitable[Act]]
    ) -> list[Act]:
        """As ``once`` for ``request`` with each of ``seeds``, at the same time; ``perform`` is given one's place.

        All are waited for, whatever one of them raises: what was paid for is on record.
        """
        seeded = Seeded(kind, request)
        return await all_finished(
            *(
                self._once(seeded.key(seed), kind, partial(seeded.text, seed), partial(perform, place))
                for place, seed in enumerate(seeds)
            )
        )

    async def _once(self, key: str, kind: str, text: Callable[[], str], perform: Callable[[], Awaitable[Act]]) -> Act:
        line = self._line()
        async with self._performing.setdefault(key, asyncio.Lock()):
            (act_of_record,) = await line.reads.ask([key])
            if act_of_record is not None:
                return act_of_record
            (act,) = await line.writes.ask([_Entry(key, kind, text(), await perform())])
            return act

    async def all_of(
        self,
        kind: str,
        request: Mapping[str, Any],
        seeds: Sequence[int],
        perform: Callable[[Sequence[int]], Awaitable[Mapping[int, Act]]],
    ) -> list[Act]:
        """As ``once`` for ``request`` with each of ``seeds``.

        ``perform`` is given the places of those that are not on record, performs one or more of them, and is asked
        again until none is left. What it made before it raised stays on record; what it made at once is durable
        together or not at all.
        """
        seeded, line = Seeded(kind, request), self._line()
        keys = [seeded.key(seed) for seed in seeds]
        async with self._held(keys):
            acts = {place: act for place, act in enumerate(await line.reads.ask(keys)) if act is not None}
            while missing := [place for place in range(len(keys)) if place not in acts]:
                performed = await perform(missing)
                entries = [
                    _Entry(keys[place], kind, seeded.text(seeds[place]), act) for place, act in performed.items()
                ]
                acts |= zip(performed, await line.writes.ask(entries), strict=True)
        return [acts[place] for place in range(len(keys))]

    @asynccontextmanager
    async def _held(self, keys: Sequence[str]) -> AsyncIterator[None]:
        """No other task of this process performs any of these acts meanwhile."""
        held: list[asyncio.Lock] = []
        try:
            for key in sorted(set(keys)):  # one order for all, or two that share keys would wait for each other
                lock = self._performing.setdefault(key, asyncio.Lock())
                await lock.acquire()
                held.append(lock)
            yield
        finally:
            for lock in held:
                lock.release()

    def look_up(self, keys: Sequence[str]) -> dict[str, Recorded]:
        """Those of ``keys`` that are on record, with what was asked and when."""
        return {recorded.key: recorded for recorded in self._recorded(_acts.c.key.in_(keys))}

    def with_seeds(self, kind: str, seeds: Sequence[int]) -> list[Recorded]:
        """The acts of a kind whose request names one of ``seeds``, oldest first. Reads all acts of the kind."""
        if self.url.get_backend_name() == "postgresql":
            # its JSON functions refuse a whole act for one escaped NUL or lone surrogate in what a model wrote
            among = "|".join(map(str, seeds)) or "none"
            names_one: sa.ColumnElement[bool] = _acts.c.request.regexp_match(f'"seed": ({among})[,}}]')
        else:
            names_one = sa.func.json_extract(_acts.c.request, "$.seed").in_(seeds)
        acts = self._recorded(sa.and_(_acts.c.kind == kind, names_one))
        return sorted((act for act in acts if act.request.get("seed") in seeds), key=lambda act: act.made_at)

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
            line = _Line(Batches(self._read_all, self._threads), Batches(self._write_all, self._threads))
            self._lines[loop] = line
        return line

    def _read_all(self, batch: Sequence[Sequence[str]]) -> list[list[Act | None]]:
        return _shared(self._read([key for keys in batch for key in keys]), batch)

    def _write_all(self, batch: Sequence[Sequence[_Entry]]) -> list[list[Act]]:
        return _shared(self._write([entry for entries in batch for entry in entries]), batch)

    def _read(self, keys: Sequence[str]) -> list[Act | None]:
        query = sa.select(_acts.c.key, _acts.c.result, _acts.c.seconds, _acts.c.cost_usd)
        parts = (keys[first : first + _MOST_KEYS] for first in range(0, len(keys), _MOST_KEYS))
        with self._engine.connect() as connection:
            queries = (query.where(_acts.c.key.in_(_padded(some))) for some in parts)
            rows = [row for part in queries for row in connection.execute(part)]
        acts = {key: Act(json.loads(result), seconds, cost) for key, result, seconds, cost in rows}
        return [acts.get(key) for key in keys]

    def _write(self, entries: Sequence[_Entry]) -> list[Act]:
        """All in one transaction. The acts of record, in the entries' order."""
        insert = postgresql.insert if self.url.get_backend_name() == "postgresql" else sqlite.insert
        statement = insert(_acts).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
        # in one order for all, or two processes that write the same keys would wait for each other
        values = [_values(entry) for entry in sorted(entries, key=attrgetter("key"))]
        with self._engine.begin() as connection:
            n_written = connection.execute(statement, values).rowcount
        if n_written == len(entries):
            return [entry.act for entry in entries]
        # another process was first, or the driver does not say how many were written
        return [act for act in self._read([entry.key for entry in entries]) if act is not None]


def _shared(answers: list[T], batch: Sequence[Sequence[Any]]) -> list[list[T]]:
    """The answers to all, as they were asked for."""
    remaining = iter(answers)
    return [list(islice(remaining, len(part))) for part in batch]


def _padded(keys: Sequence[str]) -> list[str]:
    """As many as the next power of two: the driver keeps 128 statements, and one of each length would be 100 MB."""
    n_more = (1 << (len(keys) - 1).bit_length()) - len(keys)
    return [*keys, *[keys[0]] * n_more]


def _values(entry: _Entry) -> dict[str, Any]:
    return {
        "key": entry.key,
        "kind": entry.kind,
        "request": entry.request,
        "result": spelled(entry.act.result),
        "seconds": entry.act.seconds,
        "cost_usd": entry.act.cost_usd,
        "made_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }


def act_key(kind: str, request: Mapping[str, Any]) -> str:
    """The key of an act: the digest of its kind and of all that determines it."""
    return digest({"kind": kind, "request": request})
