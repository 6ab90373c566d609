"""The tables of batches: requests whose answers come hours later, beside the ledger's calls.

    batches          batch, remote, address, stage, partition, role, made_at     one row per file of requests
    batch_requests   id, batch, request, n, frames, tries                      one row per request without an answer

A request stands for the calls with ``n`` seeds in a row. The batch holds their leases from before it is sent until its
answers are recorded, each in one transaction: a kill at any moment loses and repeats nothing. Who sends or reads a
batch claims its name as a call is claimed, so that no other process does.
"""

import json
import typing
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from darkroom.pipelines.storage.cached_calls import CallEntry, parts_of
from darkroom.pipelines.storage.database import create_table, transact
from darkroom.pipelines.storage.ledger import Ledger, call_key

KIND = "policy"


class Batch(NamedTuple):
    """A file of requests. ``remote``: the service's name of it, empty until it has answered, or the machine of its
    folder; ``address``: the URL of the service, or the folder; ``stage``, ``partition``, ``role``: who waits;
    ``made_at``: seconds since 1970."""

    batch: str
    remote: str
    address: str
    stage: str
    partition: str
    role: str
    made_at: float


class BatchRequest(NamedTuple):
    """A request of a batch. ``request``: as the ledger keeps that of the first call (JSON); ``frames``: its images as
    sent (JSON); ``tries``: how often it was sent before."""

    id: str
    batch: str
    request: str
    n: int
    frames: str
    tries: int

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        return seeded_calls(json.loads(self.request), self.n)


def seeded_calls(request: Mapping[str, Any], n: int) -> list[tuple[str, dict[str, Any]]]:
    """Key and request of ``n`` calls with seeds from that of ``request`` on."""
    seeded = [{**request, "seed": request["seed"] + number} for number in range(n)]
    return [(call_key(KIND, each), each) for each in seeded]


_TYPES = {str: sa.Text, int: sa.Integer, float: sa.Float}


def _table(name: str, row: type[NamedTuple]) -> sa.Table:
    """A table of ``row``, whose first field is the key."""
    fields = enumerate(typing.get_type_hints(row).items())
    columns: list[sa.Column[Any]] = [
        sa.Column(name, _TYPES[kind], primary_key=not n, index=n == 1, nullable=False) for n, (name, kind) in fields
    ]
    return sa.Table(name, sa.MetaData(), *columns)


_batches, _requests = _table("batches", Batch), _table("batch_requests", BatchRequest)


class BatchTable:
    """The batches of a ledger. Every method is a transaction, and bears being done twice."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._engine = ledger, ledger.engine
        for table in (_batches, _requests):
            create_table(self._engine, table)

    def open(self, *owner: str) -> list[Batch]:
        """The batches that are not read to their end: those of a stage, partition and role, or all."""
        query = sa.select(_batches).filter_by(**dict(zip(("stage", "partition", "role"), owner, strict=False)))
        return transact(self._engine, lambda connection: [Batch(*row) for row in connection.execute(query)])

    def begin(self, batch: Batch, requests: Sequence[BatchRequest]) -> None:
        """Record a batch that is about to be sent, and hand the leases of its calls over to it."""
        keys = [key for request in requests for key, _ in request.calls()]

        def write(connection: sa.Connection) -> None:
            for table, rows in ((_batches, [batch]), (_requests, requests)):
                connection.execute(sa.delete(table).where(table.c.batch == batch.batch))
                connection.execute(sa.insert(table), [row._asdict() for row in rows])
            for part in parts_of(keys):
                self._ledger.leases.hand_over(connection, part, batch.batch)

        transact(self._engine, write)

    def name(self, batch: str, remote: str) -> None:
        """Record the name that the service gave a batch."""
        named = sa.update(_batches).where(_batches.c.batch == batch).values(remote=remote)
        transact(self._engine, lambda connection: connection.execute(named))

    def waiting(self, ids: Sequence[str]) -> list[BatchRequest]:
        query = sa.select(_requests).where(_requests.c.id.in_(ids))
        return transact(self._engine, lambda connection: [BatchRequest(*row) for row in connection.execute(query)])

    def n_waiting(self, batch: str) -> int:
        query = sa.select(sa.func.count()).where(_requests.c.batch == batch)
        return transact(self._engine, lambda connection: connection.scalars(query).one())

    def finish(
        self, batch: str, requests: Sequence[BatchRequest], entries: Sequence[CallEntry], spent: sa.Executable | None
    ) -> None:
        """Record ``entries``, the answers to ``requests``, and what was ``spent``; unanswered calls are free again."""
        keys = [key for request in requests for key, _ in request.calls()]

        def write(connection: sa.Connection) -> None:
            if entries:
                self._ledger.insert(connection, entries)
            connection.execute(sa.delete(_requests).where(_requests.c.id.in_([request.id for request in requests])))
            for part in parts_of(keys):
                self._ledger.leases.release_batch(connection, batch, part)
            if spent is not None:
                connection.execute(spent)

        transact(self._engine, write)

    def end(self, batch: str) -> None:
        """Forget a batch: requests without an answer are free to be made again."""

        def write(connection: sa.Connection) -> None:
            for table in (_requests, _batches):
                connection.execute(sa.delete(table).where(table.c.batch == batch))
            self._ledger.leases.release_batch(connection, batch)

        transact(self._engine, write)
