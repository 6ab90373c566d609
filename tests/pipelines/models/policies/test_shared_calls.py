"""Calls shared out among processes: never more than there are, to each as much as to the others, none lost with one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest
import sqlalchemy as sa
from hypothesis import given, strategies as st

from darkroom.pipelines.models.policies import PolicyUnavailable
from darkroom.pipelines.models.policies.limiter import ConcurrencyLimiter, SharedCalls, fair_shares
from darkroom.pipelines.storage.ledger import Ledger
from tests.pipelines.models.policies.sharers import most_in_flight_of_three

HOLDER = """
import sys, time
from darkroom.pipelines.models.policies.limiter import SharedCalls
from darkroom.pipelines.storage.ledger import Ledger

with Ledger(sys.argv[1]) as ledger:
    print(SharedCalls(ledger, "here", 8).renew(0, 100), flush=True)
    time.sleep(3600)
"""
wants = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 50))


def leases(ledger):
    with ledger.engine.connect() as connection:
        return dict(connection.execute(sa.text("SELECT holder, leased FROM call_leases")).all())


@given(st.integers(1, 64), wants, st.integers(0, 1000))
def test_all_are_given_out_and_none_has_less_than_another_while_it_wants_more(total, wanted, turn):
    shares = fair_shares(total, wanted, turn=turn)
    assert sum(shares.values()) == min(total, sum(wanted.values()))
    assert all(0 <= shares[holder] <= wanted[holder] for holder in wanted)
    unmet = [shares[holder] for holder in wanted if shares[holder] < wanted[holder]]
    assert not unmet or max(shares.values()) <= min(unmet) + 1


def test_where_there_are_fewer_calls_than_processes_each_has_its_turn():
    wanted = dict.fromkeys("abcd", 3)
    served = {holder for turn in range(100) for holder, share in fair_shares(1, wanted, turn=turn).items() if share}
    assert served == set("abcd")


@given(total=st.integers(1, 20), steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 40))))
def test_what_processes_may_have_in_flight_never_exceeds_the_total(total, steps):
    """Each step: a process ends some of its calls, begins as many as it may, and renews."""
    with Ledger("sqlite://") as ledger:
        workers = [SharedCalls(ledger, "here", total) for _ in range(3)]
        in_flight, leased = [0, 0, 0], [0, 0, 0]
        for number, wanted, n_ended in steps:
            in_flight[number] = max(0, in_flight[number] - n_ended)
            in_flight[number] = max(in_flight[number], min(leased[number], wanted))
            held = max(leased[number], in_flight[number])
            leased[number] = workers[number].renew(held, max(wanted, in_flight[number]))
            assert sum(map(max, in_flight, leased)) <= total
            assert sum(leases(ledger).values()) <= total


def test_a_process_alone_has_all_and_gives_up_half_when_another_comes(ledger):
    first, second = SharedCalls(ledger, "here", 8), SharedCalls(ledger, "here", 8)
    assert first.renew(0, 100) == 8
    assert second.renew(0, 100) == 0  # all of them may be in flight
    assert first.renew(8, 100) == 4
    assert second.renew(0, 100) == 0  # the first has not shown that four have ended
    assert first.renew(4, 100) == 4
    assert second.renew(0, 100) == 4


def test_endpoints_are_shared_apart(ledger):
    assert SharedCalls(ledger, "here", 8).renew(0, 100) == 8
    assert SharedCalls(ledger, "there", 8).renew(0, 100) == 8


def test_the_calls_of_a_killed_process_are_free_at_once(ledger_url, ledger):
    here, command = SharedCalls(ledger, "here", 8), [sys.executable, "-c", HOLDER, ledger_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "8\n"
        assert here.renew(0, 100) == 0
        holder.kill()
    assert here.renew(0, 100) == 8
    assert leases(ledger) == {here.holder: 8}


@pytest.mark.parametrize(("seconds_ago", "expected"), [(10, 0), (70, 8)])
def test_those_of_another_machine_are_free_after_a_minute_without_a_beat(ledger, seconds_ago, expected):
    here = SharedCalls(ledger, "here", 8)
    here.renew(0, 1)
    with ledger.engine.begin() as connection:
        row = {"holder": "elsewhere/1/2/3/4", "beat": time.time() - seconds_ago}
        connection.execute(
            sa.text("INSERT INTO call_leases SELECT endpoint, :holder, 8, 8, :beat FROM call_leases"), row
        )
        connection.execute(sa.text("UPDATE call_leases SET leased = 0 WHERE holder NOT LIKE 'elsewhere%'"))
    assert here.renew(0, 100) == expected


def test_who_closes_gives_back_and_a_limiter_without_a_lease_admits_nothing(ledger):
    async def run():
        limiter, shared = ConcurrencyLimiter(4), SharedCalls(ledger, "here", 2)
        shared.keep(limiter, pytest.fail)
        assert limiter.leased == 0
        tickets = [await asyncio.wait_for(limiter.enter(), 60) for _ in range(2)]
        waiting = asyncio.create_task(limiter.enter())
        await asyncio.sleep(0)
        assert not waiting.done()
        limiter.leave(tickets[0], "served")
        await asyncio.wait_for(waiting, 60)
        assert list(leases(ledger).values()) == [2]
        await shared.close()
        assert leases(ledger) == {}

    asyncio.run(run())


@pytest.mark.e2e
def test_three_processes_keep_to_the_total_together(ledger_url, tmp_path):
    assert most_in_flight_of_three(ledger_url, tmp_path / "moments", total=5, n_calls=20) == 5


def test_a_policy_calls_no_more_than_is_leased(chat, open_policy, turn, ledger):
    async def answer(endpoint, request, body):
        await asyncio.sleep(0.02)
        return chat.completion()

    async def run():
        async with chat.serving(answer) as endpoint:
            shared = SharedCalls(ledger, f"{endpoint.url} m", 3)
            async with open_policy(endpoint.url, shared=shared, concurrency=16) as policy:
                made = await asyncio.gather(*(policy.write(turn(seed=seed)) for seed in range(30)))
            return len(made), endpoint.most_in_flight

    assert asyncio.run(run()) == (30, 3)
    assert leases(ledger) == {}


def test_calls_that_wait_fail_when_the_database_no_longer_shares_them_out(chat, open_policy, turn, ledger, monkeypatch):
    monkeypatch.setattr("darkroom.pipelines.models.policies.limiter.DEAD_SECONDS", 0.0)
    monkeypatch.setattr("darkroom.pipelines.models.policies.limiter.PERIOD_SECONDS", 0.01)
    asked, over = asyncio.Event(), asyncio.Event()

    async def answer(endpoint, request, body):
        asked.set()
        await over.wait()

    async def run():
        async with chat.serving(answer) as endpoint:
            shared = SharedCalls(ledger, endpoint.url, 1)
            async with open_policy(endpoint.url, shared=shared) as policy:
                calls = [asyncio.create_task(policy.write(turn(seed=seed))) for seed in range(3)]
                await asyncio.wait_for(asked.wait(), 60)
                with ledger.engine.begin() as connection:
                    connection.execute(sa.text("DROP TABLE call_leases"))
                with pytest.raises(PolicyUnavailable, match=r"does not share out its calls.*no such table"):
                    await asyncio.wait_for(calls[1], 60)
                with pytest.raises(PolicyUnavailable):
                    await asyncio.wait_for(calls[2], 60)
                calls[0].cancel()
                over.set()  # a server waits a minute for those it answers
                return len(endpoint.asked)

    assert asyncio.run(run()) == 1
