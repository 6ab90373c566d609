"""Claims: an act that one process performs is paid for by no other."""

import asyncio
import signal
import subprocess
import sys
import time

import pytest
import sqlalchemy as sa

from darkroom.pipelines.storage import database, leases
from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.ledger import Ledger, call_key
from tests.pipelines.storage.claimants import paid_by_two

HOLDER = """
import asyncio, sys
from darkroom.pipelines.storage.ledger import Ledger

async def perform():
    print("performing", flush=True)
    await asyncio.sleep(3600)

with Ledger(sys.argv[1]) as ledger:
    asyncio.run(ledger.get_or_run("policy", {}, perform))
"""


async def performed() -> CachedCall:
    return CachedCall({"by": "us"})


def rows(ledger):
    with ledger.engine.connect() as connection:
        return connection.execute(sa.text("SELECT key, holder FROM claims")).all()


def claimed_by_another(ledger, *, beat_seconds_ago):
    """The act of an empty request, by a process of a machine that cannot be looked at."""
    now = time.time()
    values = {"key": call_key("policy", {}), "since": now - 1000, "beat": now - beat_seconds_ago}
    with ledger.engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO claims VALUES (:key, 'elsewhere/1/2/3/4', :since, :beat)"), values)


@pytest.mark.soak
def test_two_processes_that_want_the_same_acts_pay_for_each_once(ledger_url, tmp_path):
    assert paid_by_two(ledger_url, tmp_path / "paid", 200) == list(range(200))


def test_an_act_of_a_killed_process_is_performed_at_once(ledger_url):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, ledger_url], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "performing\n"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    with Ledger(ledger_url) as ledger:
        assert len(rows(ledger)) == 1
        assert ledger.claim([call_key("policy", {})]) == [True]


def test_an_act_whose_holder_gives_no_beat_is_free(ledger_url):
    with Ledger(ledger_url) as ledger:
        claimed_by_another(ledger, beat_seconds_ago=database.DEAD_SECONDS + 10)
        assert asyncio.run(ledger.get_or_run("policy", {}, performed)).result == {"by": "us"}


@pytest.mark.parametrize("seconds", [-600.0, 600.0])
def test_a_claim_is_kept_whatever_a_machines_clock_is_set_to(ledger_url, monkeypatch, seconds):
    clock = time.time
    with Ledger(ledger_url) as holder, Ledger(ledger_url) as another:
        assert holder.claim(["a" * 64]) == [True]
        monkeypatch.setattr(time, "time", lambda: clock() + seconds)
        assert another.claim(["a" * 64]) == [False]


def test_an_act_that_another_performs_is_waited_for(ledger_url):
    async def both(ours: Ledger, theirs: Ledger) -> tuple[CachedCall, CachedCall]:
        may_end = asyncio.Event()

        async def slow() -> CachedCall:
            await may_end.wait()
            return CachedCall({"by": "them"})

        first = asyncio.create_task(theirs.get_or_run("policy", {}, slow))
        while not rows(ours):
            await asyncio.sleep(0.01)
        second = asyncio.create_task(ours.get_or_run("policy", {}, performed))
        await asyncio.sleep(0.2)
        assert not second.done()
        may_end.set()
        return await first, await second

    with Ledger(ledger_url) as ours, Ledger(ledger_url) as theirs:
        first, second = asyncio.run(both(ours, theirs))
        assert (first.result, second.result) == ({"by": "them"}, {"by": "them"})
        assert rows(ours) == []


def test_seeds_are_shared_out_among_those_who_want_them_at_once(ledger_url):
    paid: list[int] = []

    async def perform(places):
        paid.append(places[0])
        await asyncio.sleep(0.01)
        return {places[0]: CachedCall({"n": places[0]})}

    async def both(*ledgers: Ledger) -> list[list[CachedCall]]:
        return await asyncio.gather(
            *(ledger.all_of("policy", [{"seed": n} for n in range(8)], perform) for ledger in ledgers)
        )

    with Ledger(ledger_url) as one, Ledger(ledger_url) as another:
        first, second = asyncio.run(both(one, another))
    assert [act.result["n"] for act in first] == [act.result["n"] for act in second] == list(range(8))
    assert sorted(paid) == list(range(8))


def test_an_act_that_failed_is_free_for_others(ledger_url):
    async def fails() -> CachedCall:
        raise ValueError("the endpoint gave up")

    with Ledger(ledger_url) as one, Ledger(ledger_url) as another:
        with pytest.raises(ValueError, match="gave up"):
            asyncio.run(one.get_or_run("policy", {}, fails))
        assert another.claim([call_key("policy", {})]) == [True]


def test_who_is_cancelled_while_claiming_keeps_no_claim(ledger_url, monkeypatch):
    async def cancelled(ledger: Ledger) -> None:
        task = asyncio.create_task(ledger.get_or_run("policy", {}, performed))
        while not is_taking:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while rows(ledger) or not is_taken:
            await asyncio.sleep(0.01)

    is_taking, is_taken, claim = [], [], Ledger.claim

    def slow(self, keys):
        is_taking.append(keys)
        time.sleep(0.2)
        answers = claim(self, keys)
        is_taken.append(keys)
        return answers

    monkeypatch.setattr(Ledger, "claim", slow)
    with Ledger(ledger_url) as ledger:
        asyncio.run(asyncio.wait_for(cancelled(ledger), 120))


def test_an_act_that_was_finished_since_it_was_looked_for_is_not_performed_again(ledger_url, monkeypatch):
    key = call_key("policy", {})
    with Ledger(ledger_url) as ledger:
        ledger.put(key, "policy", {}, CachedCall({"by": "them"}))
        monkeypatch.setattr(ledger, "read", lambda keys: [None for _ in keys])
        assert ledger.claim([key]) == [CachedCall({"by": "them"})]
        assert rows(ledger) == []


def test_a_holder_keeps_its_claims_fresh(ledger_url, monkeypatch):
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.01)
    with Ledger(ledger_url) as ledger:
        ledger.claim(["a" * 64])
        with ledger.engine.begin() as connection:
            connection.execute(sa.text("UPDATE claims SET beat = 0"))
        while True:  # until the beat came; the test's own deadline ends it otherwise
            with ledger.engine.connect() as connection:
                if connection.scalar(sa.text("SELECT beat FROM claims")) > time.time() - database.DEAD_SECONDS:
                    break


def test_a_ledger_that_is_closed_leaves_no_claim(ledger_url):
    with Ledger(ledger_url) as ledger:
        ledger.claim(["a" * 64])
    with Ledger(ledger_url) as ledger:
        assert rows(ledger) == []
