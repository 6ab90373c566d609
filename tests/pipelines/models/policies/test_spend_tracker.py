"""What was spent under one name counts for every stage, every process and every run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest

from darkroom.pipelines.models.policies import BudgetPool, BudgetSpent, SpendLimit, SpendTracker
from darkroom.pipelines.records import Usage
from tests.waiting import wait_until

SPENDS_AND_IS_KILLED = """
import os, signal, sys, time
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.models.policies import BudgetPool, SpendLimit, SpendTracker
from darkroom.pipelines.records import Usage

ledger = Ledger(sys.argv[1])
pool = BudgetPool(SpendLimit(usd=1), tracker=SpendTracker(ledger, "crop"))
pool.require()
pool.pay(Usage(1, 10, 5, 0.75))
while not SpendTracker(ledger, "crop").others.usage.calls:
    time.sleep(0.05)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def stage(worked, ledger):
    """A stage with a pool of its own on one account."""
    return lambda rows, asked, usd, name: worked(
        BudgetPool(SpendLimit(usd=usd), tracker=SpendTracker(ledger, name)), rows, asked
    )


def test_the_second_stage_has_what_the_first_one_left(stage):
    asked: list[int] = []
    asyncio.run(stage(range(10), asked, 0.4, "crop"))
    with pytest.raises(BudgetSpent, match=r"of the pool 'crop' is spent: 0\.4\d* of 0\.4 USD"):
        asyncio.run(stage(range(10, 40), asked, 0.4, "crop"))
    assert 20 <= len(asked) <= 23


def test_another_name_is_another_budget(stage):
    asked: list[int] = []
    asyncio.run(stage(range(10), asked, 0.2, "crop"))
    asyncio.run(stage(range(10, 20), asked, 0.2, "rotation"))
    assert len(asked) == 20


def test_a_spent_pool_lets_what_is_in_the_ledger_through(stage):
    asked: list[int] = []
    asyncio.run(stage(range(10), asked, 0.2, "crop"))
    assert len(asyncio.run(stage(range(10), asked, 0.2, "crop"))) == 10
    assert len(asked) == 10


def test_a_larger_budget_goes_on_for_the_difference(stage):
    asked: list[int] = []
    for usd, n_least in ((0.2, 10), (0.4, 20), (0.6, 30)):
        with pytest.raises(BudgetSpent):
            asyncio.run(stage(range(100), asked, usd, "crop"))
        assert n_least <= len(asked) <= n_least + 3
    assert len(set(asked)) == len(asked)


def test_stages_side_by_side_stop_together(stage):
    asked: list[int] = []

    async def both() -> list[object]:
        stages = (stage(range(start, start + 200), asked, 2.0, "crop") for start in (0, 200))
        return await asyncio.gather(*stages, return_exceptions=True)

    errors = asyncio.run(both())
    assert all(isinstance(error, BudgetSpent) for error in errors)
    assert 100 <= len(asked) <= 140  # each learns of the other's last calls a little later


def test_what_a_killed_process_paid_is_spent(ledger_url, ledger):
    killed = subprocess.run([sys.executable, "-c", SPENDS_AND_IS_KILLED, ledger_url], check=False)
    assert killed.returncode == -9
    pool = BudgetPool(SpendLimit(usd=1), tracker=SpendTracker(ledger, "crop"))
    assert pool.spent == Usage(1, 10, 5, 0.75)
    pool.pay(Usage(1, 10, 5, 0.25))
    with pytest.raises(BudgetSpent):
        pool.require()
    pool.settle()


def test_tokens_are_shared_as_money_is(ledger):
    first, second = (BudgetPool(SpendLimit(tokens=100), tracker=SpendTracker(ledger, "crop")) for _ in range(2))
    first.pay(Usage(1, 60, 40, 0.0))
    first.settle()
    second.settle()
    with pytest.raises(BudgetSpent, match="100 of 100 tokens"):
        second.require()


def test_hours_of_earlier_runs_count_and_the_time_between_them_does_not(ledger):
    clock = iter([0.0, 0.0, 3600.0]).__next__
    first = BudgetPool(SpendLimit(hours=1.5), tracker=SpendTracker(ledger, "crop"), clock=clock)
    first.require()
    first.pay(Usage(1))
    first.settle()
    second = BudgetPool(SpendLimit(hours=1.5), tracker=SpendTracker(ledger, "crop"), clock=lambda: 1e9)
    second.require()
    assert second.hours == pytest.approx(1.0)


def test_a_report_is_on_record_soon_without_being_asked_for(ledger):
    BudgetPool(tracker=SpendTracker(ledger, "crop")).pay(Usage(1, 1, 1, 0.5))
    wait_until(lambda: SpendTracker(ledger, "crop").others.usage.cost_usd == 0.5)


def test_a_database_that_is_gone_is_told_by_the_next_report(ledger, monkeypatch):
    account = SpendTracker(ledger, "crop")
    pool = BudgetPool(tracker=account)
    monkeypatch.setattr(account, "entry", lambda own, session: (_ for _ in ()).throw(OSError("disk full")))

    def pay_until_told() -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            pool.pay(Usage(1))
            time.sleep(0.01)

    with pytest.raises(OSError, match="disk full"):
        pay_until_told()
