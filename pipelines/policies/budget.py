"""What a run may spend: money, tokens or hours. Only calls that are made now count, not those that are recalled.

When it is spent no call begins any more; those in flight finish and are recorded, so it may be overdrawn by as many
calls as were in flight. A server that reports no tokens spends none: give hours there.

A purse with an account counts what was ever spent under that name (``pipelines/policies/account.py``), by every stage
and in every run; one without counts its own calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pipelines.policies.account import Account, Spent
from pipelines.policies.base import PolicyUnavailable
from pipelines.records import Usage

_ALL_BUT_ROUNDING = 1 - 1e-9
"""Ten calls of two cents add up to a little less than twenty, as floats do."""


class BudgetSpent(PolicyUnavailable):
    """The budget is spent: no row's fault, and nothing is lost. The stage stops, and goes on with a larger budget."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that may be spent; None is no limit."""

    usd: float | None = None
    tokens: int | None = None
    """Of prompts and completions together."""
    hours: float | None = None
    """Of wall clock, from the first call; those of parallel stages add up."""


class Purse:
    """What is spent of a budget. One purse may serve several policies, and several stages one after the other.

    >>> purse = Purse(Budget(usd=20), account=Account(workspace.ledger, "crop"))
    """

    def __init__(
        self,
        budget: Budget | None = None,
        *,
        account: Account | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget or Budget()
        self._account, self._clock = account, clock
        self._own = Usage()
        self._began: float | None = None

    @property
    def spent(self) -> Usage:
        """By this purse, and by all others on its account."""
        return self._own if self._account is None else self._own + self._account.others.usage

    @property
    def hours(self) -> float:
        """Since the first call, and those of all others on its account."""
        return self._own_hours + (0.0 if self._account is None else self._account.others.hours)

    @property
    def _own_hours(self) -> float:
        return 0.0 if self._began is None else (self._clock() - self._began) / 3600

    def require(self) -> None:
        """To be asked before every call. Raises ``BudgetSpent``."""
        if self._began is None:
            self._began = self._clock()
        reached = self._reached()
        if reached:
            purse = f" of the purse {self._account.name!r}" if self._account is not None else ""
            raise BudgetSpent(
                f"the budget{purse} is spent: {reached}, in {self.spent.calls} calls. Run this again with a larger "
                "budget: it goes on where it stopped, and calls that were made are not paid for a second time"
            )

    def pay(self, usage: Usage) -> None:
        """A call was made."""
        self._own += usage
        if self._account is not None:
            self._account.report(Spent(self._own, self._own_hours))

    def settle(self) -> None:
        """Puts on record what was spent, where there is an account."""
        if self._account is not None:
            self._account.settle()

    @property
    def is_spent(self) -> bool:
        """Whether no further call may begin."""
        return bool(self._reached())

    def _reached(self) -> str:
        budget, spent = self.budget, self.spent
        if budget.usd is not None and spent.cost_usd >= budget.usd * _ALL_BUT_ROUNDING:
            return f"{spent.cost_usd:.4g} of {budget.usd:.4g} USD"
        n_tokens = spent.prompt_tokens + spent.completion_tokens
        if budget.tokens is not None and n_tokens >= budget.tokens:
            return f"{n_tokens} of {budget.tokens} tokens"
        if budget.hours is not None and self.hours >= budget.hours:
            return f"{self.hours:.3g} of {budget.hours:.3g} hours"
        return ""
