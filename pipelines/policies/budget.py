"""What a run may spend: money, tokens or hours. Only calls that are made now count, not those that are recalled.

When it is spent no call begins any more; those in flight finish and are recorded, so it may be overdrawn by as many
calls as were in flight. A server that reports no tokens spends none: give hours there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

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
    """Of wall clock, from the first call."""


class Purse:
    """What is spent of a budget. One purse may serve several policies, and several stages one after the other."""

    def __init__(self, budget: Budget | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget or Budget()
        self.spent = Usage()
        self._clock = clock
        self._began: float | None = None

    @property
    def hours(self) -> float:
        """Since the first call."""
        return 0.0 if self._began is None else (self._clock() - self._began) / 3600

    def require(self) -> None:
        """To be asked before every call. Raises ``BudgetSpent``."""
        if self._began is None:
            self._began = self._clock()
        reached = self._reached()
        if reached:
            raise BudgetSpent(
                f"the budget is spent: {reached}, in {self.spent.calls} calls. Run this again with a larger budget: it "
                "goes on where it stopped, and calls of this run are not paid for a second time"
            )

    def pay(self, usage: Usage) -> None:
        """A call was made."""
        self.spent += usage

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
