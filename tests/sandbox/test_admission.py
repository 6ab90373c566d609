"""Whose turn it is: as many calls compute as there are slots, sleepers make room, a pool that closes waits for none."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from darkroom.sandbox import Limits, Observation, SandboxClosed, SandboxPool, Session
from darkroom.sandbox.calls import Slots
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

SLEEPS = "import time\ntime.sleep(100)"
COMPUTES = "while True: pass"


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


@pytest.fixture
def narrow(full_tier: None) -> Iterator[SandboxPool]:
    """One call at a time."""
    with SandboxPool(tier="full", concurrency=1, limits=Limits(seconds=200)) as pool:
        yield pool


def test_a_sleeper_lends_its_slot_and_takes_it_back_without_waiting() -> None:
    slots = Slots(1)
    sleeper = slots.wait(lambda: False)
    sleeper.note(False)
    guest = slots.wait(lambda: False)
    sleeper.note(True)
    guest.note(False)
    over = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        late = thread.submit(slots.wait, over.is_set)
        assert not late.done()  # the one slot is the sleeper's again
        sleeper.note(False)
        late.result().note(False)
        over.set()
    slots.wait(over.is_set).note(False)
    slots.wait(lambda: False).note(False)  # and none was lost


def test_a_call_that_is_over_leaves_the_slot_to_the_next() -> None:
    slots, over = Slots(1), threading.Event()
    first = slots.wait(lambda: False)
    with ThreadPoolExecutor(2) as threads:
        given_up, served = threads.submit(slots.wait, over.is_set), threads.submit(slots.wait, lambda: False)
        over.set()
        slots.wake()
        given_up.result().note(False)
        assert not served.done()
        first.note(False)
        served.result().note(False)


def test_an_empty_call_does_not_wait_behind_sleepers(narrow: SandboxPool, threads: ThreadPoolExecutor) -> None:
    with narrow.group(rollouts=4) as group:
        sleepers = [threads.submit(group.session().run, SLEEPS) for _ in range(3)]
        assert group.session().run("print(1)").text == "1\n"
        assert not any(sleeper.done() for sleeper in sleepers)
        group.close()
        assert {sleeper.result().status for sleeper in sleepers} == {"killed"}


def test_a_call_that_computes_keeps_its_slot(narrow: SandboxPool, threads: ThreadPoolExecutor) -> None:
    with narrow.group(rollouts=2) as group:
        computing, waiting = group.session(), group.session()
        assert computing.run("print(0)").text == "0\n"  # a session that is only starting does not compute yet
        calls = [threads.submit(computing.run, COMPUTES)]
        wait_until(lambda: narrow.stats().running == 1)
        calls.append(threads.submit(waiting.run, "print(1)"))
        wait_until(lambda: narrow.stats().waiting == 1)
        threading.Event().wait(0.5)  # five looks at its clock
        assert (narrow.stats().running, narrow.stats().waiting) == (1, 1)
        computing.close()
        assert [call.result().status for call in calls] == ["killed", "ok"]


@pytest.mark.parametrize("code", [SLEEPS, COMPUTES])
def test_a_pool_that_closes_waits_for_no_call(narrow: SandboxPool, threads: ThreadPoolExecutor, code: str) -> None:
    with narrow.group(rollouts=4) as group:
        calls = [threads.submit(group.session().run, code) for _ in range(4)]
        wait_until(lambda: narrow.stats().running + narrow.stats().waiting == 4)
        narrow.close()
        assert {(call.result().status, call.result().broken) for call in calls} == {("killed", True)}
        assert narrow.stats().broken == 0  # by their owner


def test_rollouts_of_an_event_loop_end_as_broken_when_their_pool_closes(narrow: SandboxPool) -> None:
    async def roll_out(sessions: list[Session]) -> list[Observation]:
        calls = [asyncio.ensure_future(session.arun(COMPUTES)) for session in sessions]
        while not narrow.stats().running:
            await asyncio.sleep(0.02)
        await asyncio.to_thread(narrow.close)
        calls.append(asyncio.ensure_future(sessions[0].arun("print(1)")))
        return await asyncio.wait_for(asyncio.gather(*calls), 300)

    with narrow.group(rollouts=80) as group:
        observations = asyncio.run(roll_out([group.session() for _ in range(80)]))
    assert {(seen.status, seen.broken) for seen in observations} == {("killed", True)}


def test_a_pool_that_closes_while_it_starts_says_so(full_tier: None, threads: ThreadPoolExecutor) -> None:
    pool = SandboxPool(tier="full")
    group: Future[object] = threads.submit(pool.group)
    wait_until(lambda: pool._lock.locked() or group.done())
    pool.close()
    with pytest.raises(SandboxClosed):
        group.result()
