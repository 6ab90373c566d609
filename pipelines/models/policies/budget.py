"""Budgets in money, tokens or hours, for one process or for all that share a budget pool.

Only calls that are made now count, not those recalled from the ledger. Once a limit is reached no call begins; calls in
flight finish and are recorded, so the limit may be exceeded by that many calls. A server that reports no tokens spends
none: limit its hours.

A pool with a tracker counts all that was ever spent under its name, in a table beside the ledger's acts:

    purse   session   calls   tokens   cost_usd   hours        one row per pool and per process that spends
    crop    1f…       812     …        4.06       0.31

A process writes its row a twentieth of a second after a call and reads the sum of the other rows with it, so a kill
loses at most what was spent in that time.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

import sqlalchemy as sa

from darkroom.pipelines.models.policies.policy import PolicyUnavailable
from darkroom.pipelines.records import Usage, to_row
from darkroom.pipelines.storage.database import create_table, required, transact, upsert
from darkroom.pipelines.storage.ledger import Ledger

SETTLE_SECONDS = 0.05
_ROUNDING = 1 - 1e-9
"""Ten calls of two cents add up to a little less than twenty in floats."""

_purses = sa.Table(
    "purses",
    sa.MetaData(),
    sa.Column("purse", sa.String(200), primary_key=True),
    sa.Column("session", sa.String(32), primary_key=True),
    *required(sa.BigInteger, "calls", "prompt_tokens", "completion_tokens"),
    *required(sa.Float, "cost_usd", "hours"),
)
_AMOUNTS = ("calls", "prompt_tokens", "completion_tokens", "cost_usd", "hours")


class BudgetSpent(PolicyUnavailable):
    """A limit is reached: no row's error, and nothing is lost. The stage stops and resumes with a larger budget."""


@dataclass(frozen=True, slots=True)
class SpendLimit:
    """Upper limits; None is no limit."""

    usd: float | None = None
    tokens: int | None = None
    """Of prompts and completions together."""
    hours: float | None = None
    """Of wall clock, from the first call; those of parallel stages add up."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Usage, and hours of work from the first call to the last; those of parallel stages add up."""

    usage: Usage = Usage()
    hours: float = 0.0


class SpendTracker:
    """Row of this process under ``name``, and the sum of all other rows as last read (``others``)."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self.name = name
        self._ledger, self._session = ledger, uuid4().hex
        self._lock = threading.Lock()  # both the timer's thread and the caller settle
        self._timer: threading.Timer | None = None
        self._own = self._written = Spending()
        self._error: Exception | None = None
        create_table(ledger.engine, _purses)
        self.others = self._read()

    def report(self, own: Spending) -> None:
        """Records the spending of this process so far, soon. Raises the error of an earlier recording."""
        if self._error is not None:
            raise self._error
        self._own = own
        if self._timer is None:
            self._timer = threading.Timer(SETTLE_SECONDS, self._settle_late)
            self._timer.daemon = True
            self._timer.start()

    def settle(self) -> None:
        """Writes the last report and reads the spending of the others."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        with self._lock:
            self._synchronize()

    def _settle_late(self) -> None:
        self._timer = None  # a report from here on starts the next one
        try:
            with self._lock:
                if self._own is not self._written:  # else it was settled meanwhile, perhaps for good
                    self._synchronize()
        except Exception as error:  # noqa: BLE001  # raised by the next report, in the caller's thread
            self._error = error

    def _synchronize(self) -> None:
        if (own := self._own) is not self._written:
            write = self.entry(own, session=self._session)
            transact(self._ledger.engine, lambda connection: connection.execute(write))
            self._written = own
        self.others = self._read()

    def _read(self) -> Spending:
        others = sa.and_(_purses.c.purse == self.name, _purses.c.session != self._session)
        query = sa.select(*(sa.func.coalesce(sa.func.sum(_purses.c[name]), 0) for name in _AMOUNTS)).where(others)
        row = transact(self._ledger.engine, lambda connection: connection.execute(query).one())
        calls, prompt, completion, cost, hours = row
        return Spending(Usage(int(calls), int(prompt), int(completion), float(cost)), float(hours))

    def entry(self, spending: Spending, *, session: str) -> sa.Executable:
        """The statement that makes ``spending`` the row of ``session``."""
        row = {"purse": self.name, "session": session, **to_row(spending.usage), "hours": spending.hours}
        return upsert(_purses, row, keys=("purse", "session"), dialect=self._ledger.engine.dialect.name)


class BudgetPool:
    """The spending against a limit. Several policies may share a pool, and several stages one after the other.

    >>> pool = BudgetPool(SpendLimit(usd=20), tracker=SpendTracker(workspace.ledger, "crop"))
    """

    def __init__(
        self,
        limit: SpendLimit | None = None,
        *,
        tracker: SpendTracker | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit or SpendLimit()
        self._tracker, self._clock = tracker, clock
        self._own = Usage()
        self._start: float | None = None

    @property
    def spent(self) -> Usage:
        """Usage of this pool and of all others with its tracker's name."""
        return self._own if self._tracker is None else self._own + self._tracker.others.usage

    @property
    def hours(self) -> float:
        """Hours since the first call, and those of all others with its tracker's name."""
        return self._own_hours + (0.0 if self._tracker is None else self._tracker.others.hours)

    @property
    def _own_hours(self) -> float:
        return 0.0 if self._start is None else (self._clock() - self._start) / 3600

    def require(self) -> None:
        """Check the budget, before every call to a model. Raises ``BudgetSpent``."""
        if self._start is None:
            self._start = self._clock()
        if reached := self._reached():
            pool = f" of the pool {self._tracker.name!r}" if self._tracker is not None else ""
            resumes = "it resumes where it stopped, and finished calls are not paid for a second time"
            spent = f"the budget{pool} is spent: {reached}, in {self.spent.calls} calls"
            raise BudgetSpent(f"{spent}. Run this again with a larger budget: {resumes}")

    def pay(self, usage: Usage) -> None:
        self._own += usage
        if self._tracker is not None:
            self._tracker.report(Spending(self._own, self._own_hours))

    def pay_within(self, usage: Usage) -> sa.Executable | None:
        """Pay as part of a transaction: the statement for it; without a tracker it is paid at once, and there is none.
        The pool knows of it after ``settle``."""
        if self._tracker is None:
            self.pay(usage)
            return None
        return self._tracker.entry(Spending(usage), session=uuid4().hex)

    def settle(self) -> None:
        """Records the spending, where there is a tracker, and reads what others spent."""
        if self._tracker is not None:
            self._tracker.settle()

    def _reached(self) -> str:
        limit, spent = self.limit, self.spent
        if limit.usd is not None and spent.cost_usd >= limit.usd * _ROUNDING:
            return f"{spent.cost_usd:.4g} of {limit.usd:.4g} USD"
        if limit.tokens is not None and spent.n_tokens >= limit.tokens:
            return f"{spent.n_tokens} of {limit.tokens} tokens"
        if limit.hours is not None and self.hours >= limit.hours:
            return f"{self.hours:.3g} of {limit.hours:.3g} hours"
        return ""
