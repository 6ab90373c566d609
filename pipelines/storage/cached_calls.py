"""The table of cached calls: reads, writes and claims, each a statement or two for any number of keys. ``Ledger`` adds
callers that wait. A call holds a lease while it runs (``leases.py``), so two processes that want the same one pay for
it once. The table keeps its first name, ``acts``."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, NamedTuple, Self

import sqlalchemy as sa

from darkroom.pipelines.storage.database import (
    KEYS,
    create_table,
    first_line,
    open_engine,
    padded,
    parsed_url,
    required,
    transact,
    unavailable,
)
from darkroom.pipelines.storage.leases import Leases

_calls = sa.Table(
    "acts",
    sa.MetaData(),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False, index=True),
    *required(sa.Text, "request", "result"),
    *required(sa.Float, "seconds", "cost_usd"),
    sa.Column("made_at", sa.String(32), nullable=False),
)
_READ = sa.select(_calls.c.key, _calls.c.result, _calls.c.seconds, _calls.c.cost_usd).where(_calls.c.key.in_(KEYS))
# as text: SQLAlchemy compiles its dialects' statements with ON CONFLICT each time (their `inherit_cache` is false)
_WRITE = sa.text(
    "INSERT INTO acts (key, kind, request, result, seconds, cost_usd, made_at) "
    "VALUES (:key, :kind, :request, :result, :seconds, :cost_usd, :made_at) ON CONFLICT DO NOTHING"
).execution_options(preserve_rowcount=True)

_MOST_KEYS = 8_192
"""SQLite takes at most 32,766 values in a statement."""


@dataclass(frozen=True, slots=True)
class CachedCall:
    """Result, duration and cost of a cached call."""

    result: Mapping[str, Any]
    seconds: float = 0.0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Totals:
    """The calls of one kind, added up."""

    calls: int
    seconds: float
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call as the ledger holds it. ``made_at``: UTC, ISO 8601."""

    key: str
    kind: str
    request: Mapping[str, Any]
    call: CachedCall
    made_at: str


class CallEntry(NamedTuple):
    """A call to be written. ``request``: as the ledger keeps it."""

    key: str
    kind: str
    request: str
    call: CachedCall


class CallTable:
    """Acts by key, in the database at ``url``. Raises ``LedgerUnavailable`` where it cannot be opened."""

    def __init__(self, url: str) -> None:
        self.url = parsed_url(url)
        try:
            self.engine = open_engine(self.url)
            """The database, for what is kept beside the calls (``pipelines/models/policies/budget.py``)."""
            create_table(self.engine, _calls)
            self.leases = Leases(self.engine)
        except (sa.exc.SQLAlchemyError, ImportError) as error:
            raise unavailable(self.url.set(query={}).render_as_string(), first_line(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all leases and closes every connection."""
        self.leases.close()
        self.engine.dispose()

    def get(self, key: str) -> CachedCall | None:
        return self.read([key])[0]

    def put(self, key: str, kind: str, request: Mapping[str, Any], call: CachedCall) -> CachedCall:
        """Makes ``call`` durable and returns the call of record: the first one written under ``key`` stays."""
        return self.write([CallEntry(key, kind, to_json(request), call)])[0]

    def look_up(self, keys: Sequence[str]) -> dict[str, Recorded]:
        """Look up the recorded calls among ``keys``, with request and time."""
        return {recorded.key: recorded for recorded in self._recorded(_calls.c.key.in_(keys))}

    def with_seeds(self, kind: str, seeds: Sequence[int]) -> list[Recorded]:
        """The calls of a kind whose request names one of ``seeds``, oldest first. Reads all calls of the kind."""
        if self.url.get_backend_name() == "postgresql":
            # its JSON functions refuse a whole call for one escaped NUL or lone surrogate in what a model wrote
            among = "|".join(map(str, seeds)) or "none"
            names_one: sa.ColumnElement[bool] = _calls.c.request.regexp_match(f'"seed": ({among})[,}}]')
        else:
            names_one = sa.func.json_extract(_calls.c.request, "$.seed").in_(seeds)
        calls = self._recorded(sa.and_(_calls.c.kind == kind, names_one))
        return sorted((call for call in calls if call.request.get("seed") in seeds), key=lambda call: call.made_at)

    def _recorded(self, condition: sa.ColumnElement[bool]) -> list[Recorded]:
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(_calls).where(condition)).all()
        calls = (CachedCall(json.loads(row.result), row.seconds, row.cost_usd) for row in rows)
        return [
            Recorded(row.key, row.kind, json.loads(row.request), call, row.made_at)
            for row, call in zip(rows, calls, strict=True)
        ]

    def results(self, kind: str) -> Iterator[tuple[str, str]]:
        """Stream the calls of a kind: key, result as JSON."""
        with self.engine.connect().execution_options(yield_per=1_000) as connection:
            query = sa.select(_calls.c.key, _calls.c.result).where(_calls.c.kind == kind)
            yield from map(tuple, connection.execute(query))

    def forget(self, keys: Sequence[str]) -> None:
        """Delete recorded calls: they are made, and paid for, again when they are needed."""
        for part in parts_of(keys):
            self._delete(_calls.c.key.in_(part))

    def forget_about(self, digest: str) -> int:
        """Delete the recorded calls whose request or result names a digest; returns their number."""
        names = sa.or_(*(column.contains(digest, autoescape=True) for column in (_calls.c.request, _calls.c.result)))
        return self._delete(names)

    def _delete(self, condition: sa.ColumnElement[bool]) -> int:
        return transact(self.engine, lambda connection: connection.execute(sa.delete(_calls).where(condition)).rowcount)

    def totals(self) -> dict[str, Totals]:
        columns = (sa.func.count(), sa.func.sum(_calls.c.seconds), sa.func.sum(_calls.c.cost_usd))
        query = sa.select(_calls.c.kind, *columns).group_by(_calls.c.kind).order_by(_calls.c.kind)
        with self.engine.connect() as connection:
            return {kind: Totals(n, seconds, cost) for kind, n, seconds, cost in connection.execute(query)}

    def read(self, keys: Sequence[str]) -> list[CachedCall | None]:
        calls = transact(self.engine, lambda connection: _calls_under(connection, keys))
        return [calls.get(key) for key in keys]

    def claim(self, keys: Sequence[str]) -> list[CachedCall | bool | None]:
        """Claim calls: each is recorded, or True (this holder may run it), False (another does), None (in a batch)."""
        calls = {key: call for key, call in zip(keys, self.read(keys), strict=True) if call is not None}
        missing = [key for key in keys if key not in calls]
        claimed, in_batches = set[str](), set[str]()
        if missing:
            claimed, in_batches, late = transact(self.engine, lambda connection: self._claim(connection, missing))
            calls |= late
        return [calls.get(key, None if key in in_batches else key in claimed) for key in keys]

    def _claim(
        self, connection: sa.Connection, keys: Sequence[str]
    ) -> tuple[set[str], set[str], dict[str, CachedCall]]:
        """Lease keys: those that this holder got, those that batches have, and calls recorded since the first look."""
        claimed: set[str] = set()
        for part in parts_of(keys):
            claimed |= self.leases.claim(connection, part)
        late = _calls_under(connection, sorted(claimed)) if claimed else {}
        self._drop(connection, list(late))  # a finished caller holds no lease any more
        refused = [key for key in keys if key not in claimed]
        return claimed, {key for part in parts_of(refused) for key in self.leases.in_batches(connection, part)}, late

    def release(self, keys: Sequence[str]) -> None:
        for part in parts_of(keys):
            self.leases.release(part)

    def write(self, entries: Sequence[CallEntry]) -> list[CachedCall]:
        """All in one transaction, which ends their leases. The calls of record, in the entries' order."""

        def insert_all(connection: sa.Connection) -> int:
            n_inserted = self.insert(connection, entries)
            self._drop(connection, [entry.key for entry in entries])
            return n_inserted

        if transact(self.engine, insert_all) == len(entries):
            return [entry.call for entry in entries]
        # another process was first, the transaction was done twice, or the driver does not say how many were written
        return [call for call in self.read([entry.key for entry in entries]) if call is not None]

    def insert(self, connection: sa.Connection, entries: Sequence[CallEntry]) -> int:
        """Insert calls, as part of the caller's transaction; a recorded one stays. Returns how many are new."""
        # in one order for all, or two processes that write the same keys would wait for each other
        values = [_values(entry) for entry in sorted(entries, key=attrgetter("key"))]
        return connection.execute(_WRITE, values).rowcount

    def _drop(self, connection: sa.Connection, keys: Sequence[str]) -> None:
        for part in parts_of(keys):
            self.leases.drop(connection, part)


def _calls_under(connection: sa.Connection, keys: Sequence[str]) -> dict[str, CachedCall]:
    rows = [row for part in parts_of(keys) for row in connection.execute(_READ, {"keys": padded(part)})]
    return {key: CachedCall(json.loads(result), seconds, cost) for key, result, seconds, cost in rows}


def parts_of(keys: Sequence[str]) -> list[Sequence[str]]:
    """``keys`` in parts that a statement takes."""
    return [keys[first : first + _MOST_KEYS] for first in range(0, len(keys), _MOST_KEYS)]


def _values(entry: CallEntry) -> dict[str, Any]:
    key, kind, request, call = entry
    spent = {"seconds": call.seconds, "cost_usd": call.cost_usd}
    made_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"key": key, "kind": kind, "request": request, "result": to_json(call.result), **spent, "made_at": made_at}


def to_json(request: Mapping[str, Any]) -> str:
    """A request as the ledger keeps it. ASCII: a model may write what no database takes."""
    return json.dumps(request, sort_keys=True)
