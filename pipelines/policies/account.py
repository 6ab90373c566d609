"""What was spent under a name, on record beside the ledger's acts: stages that follow one another, work side by side or
were killed draw on one budget.

    purse   session   calls   tokens   cost_usd   hours        one line per purse and per process that spends
    crop    1f…       812     …        4.06       0.31

A process writes its own line a twentieth of a second after a call, and reads the sum of the others with it: what a kill
leaves unsaid is what was paid in that time.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pipelines.database import create_table
from pipelines.ledger import Ledger
from pipelines.records import Usage

SETTLE_SECONDS = 0.05

_purses = sa.Table(
    "purses",
    sa.MetaData(),
    sa.Column("purse", sa.String(200), primary_key=True),
    sa.Column("session", sa.String(32), primary_key=True),
    sa.Column("calls", sa.BigInteger, nullable=False),
    sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
    sa.Column("completion_tokens", sa.BigInteger, nullable=False),
    sa.Column("cost_usd", sa.Float, nullable=False),
    sa.Column("hours", sa.Float, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Spent:
    """Usage, and hours of work from the first call to the last; those of parallel stages add up."""

    usage: Usage = Usage()
    hours: float = 0.0


class Account:
    """This process's line under ``name``, and what all the others have spent, as last read."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self.name = name
        self._ledger, self._session = ledger, uuid4().hex
        self._lock = threading.Lock()  # the timer's thread and the caller's settle alike
        self._timer: threading.Timer | None = None
        self._own = self._written = Spent()
        self._fault: Exception | None = None
        create_table(ledger.engine, _purses)
        self.others = self._read()

    def report(self, own: Spent) -> None:
        """What this process has spent so far; on record soon. Raises what went wrong with an earlier report."""
        if self._fault is not None:
            raise self._fault
        self._own = own
        if self._timer is None:
            self._timer = threading.Timer(SETTLE_SECONDS, self._settle_late)
            self._timer.daemon = True
            self._timer.start()

    def settle(self) -> None:
        """Writes what was reported last and reads what the others have spent."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        with self._lock:
            self._exchange()

    def _settle_late(self) -> None:
        self._timer = None  # whoever reports from here on starts the next one
        try:
            with self._lock:
                if self._own is not self._written:  # else it was settled meanwhile, perhaps for good
                    self._exchange()
        except Exception as fault:  # noqa: BLE001  # raised by the next report, where somebody sees it
            self._fault = fault

    def _exchange(self) -> None:
        own = self._own
        if own is not self._written:
            self._write(own)
            self._written = own
        self.others = self._read()

    def _read(self) -> Spent:
        columns = (_purses.c[name] for name in ("calls", "prompt_tokens", "completion_tokens", "cost_usd", "hours"))
        others = sa.and_(_purses.c.purse == self.name, _purses.c.session != self._session)
        query = sa.select(*(sa.func.coalesce(sa.func.sum(column), 0) for column in columns)).where(others)
        with self._ledger.engine.connect() as connection:
            calls, prompt, completion, cost, hours = connection.execute(query).one()
        return Spent(Usage(int(calls), int(prompt), int(completion), float(cost)), float(hours))

    def _write(self, own: Spent) -> None:
        insert = postgresql.insert if self._ledger.url.get_backend_name() == "postgresql" else sqlite.insert
        spent: dict[str, Any] = {
            "calls": own.usage.calls,
            "prompt_tokens": own.usage.prompt_tokens,
            "completion_tokens": own.usage.completion_tokens,
            "cost_usd": own.usage.cost_usd,
            "hours": own.hours,
        }
        line = insert(_purses).values(purse=self.name, session=self._session, **spent)
        with self._ledger.engine.begin() as connection:
            connection.execute(line.on_conflict_do_update(index_elements=["purse", "session"], set_=spent))
