"""A budget stops a stage cleanly, and what was paid for is not paid for again when it goes on."""

from __future__ import annotations

import asyncio

import pytest

from darkroom.pipelines.models.policies import (
    BudgetPool,
    BudgetSpent,
    Endpoint,
    OpenAIPolicy,
    PolicyUnavailable,
    SpendLimit,
)
from darkroom.pipelines.records import Usage


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def stage(worked):
    """Thirty rows, worked on within a budget."""
    return lambda budget, asked: asyncio.run(worked(BudgetPool(budget), range(30), asked))


def test_a_spent_budget_stops_the_stage_and_records_what_was_in_flight(stage, ledger):
    asked: list[int] = []
    with pytest.raises(BudgetSpent, match=r"of 0\.2 USD.*larger budget"):
        stage(SpendLimit(usd=0.2), asked)
    assert 10 <= len(asked) <= 13  # ten are paid for, the three beside the tenth were in flight
    assert ledger.totals()["policy"].calls == len(asked)


def test_going_on_with_a_larger_budget_pays_for_nothing_twice(stage, ledger):
    asked: list[int] = []
    with pytest.raises(BudgetSpent):
        stage(SpendLimit(usd=0.2), asked)
    assert len(stage(SpendLimit(usd=1.0), asked)) == 30
    assert sorted(asked) == list(range(30))
    assert ledger.totals()["policy"].cost_usd == pytest.approx(0.6)


def test_what_the_ledger_recalls_is_not_spent(stage):
    stage(SpendLimit(), [])
    asked: list[int] = []
    assert len(stage(SpendLimit(usd=0.01), asked)) == 30
    assert asked == []


def test_tokens_of_prompt_and_completion_count(stage):
    asked: list[int] = []
    with pytest.raises(BudgetSpent, match="of 150 tokens"):
        stage(SpendLimit(tokens=150), asked)
    assert 10 <= len(asked) <= 13


def test_hours_count_from_the_first_call():
    clock = Clock()
    pool = BudgetPool(SpendLimit(hours=2), clock=clock)
    clock.seconds = 1e6
    pool.require()
    clock.seconds += 2 * 3600 - 1
    pool.require()
    clock.seconds += 2
    with pytest.raises(BudgetSpent, match="2 of 2 hours"):
        pool.require()


def test_no_budget_is_no_limit():
    pool = BudgetPool()
    pool.pay(Usage(1, 10**12, 10**12, 1e12))
    pool.require()


def test_a_spent_budget_is_no_rows_error():
    assert issubclass(BudgetSpent, PolicyUnavailable)


def test_a_budget_in_money_without_prices_is_refused_before_any_call(store):
    async def check():
        policy = OpenAIPolicy(
            Endpoint("http://127.0.0.1:1/v1", "model"), store, budget_pool=BudgetPool(SpendLimit(usd=1))
        )
        try:
            await policy.check()
        finally:
            await policy.close()

    with pytest.raises(PolicyUnavailable, match="needs the prices of model"):
        asyncio.run(check())
