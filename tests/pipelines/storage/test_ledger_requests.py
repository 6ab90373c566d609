"""A request with many seeds: each is a request of its own."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.ledger import MOST_AT_ONCE, GroupCommit, Ledger, call_key


@pytest.mark.parametrize("asked", [{}, {"a": 1, "z": {"seed": 7}}, {"text": "\ud800 é\0", "seeds": [1]}])
def test_calls_with_seeds_are_recorded_as_requests_of_their_own(tmp_path, asked):
    async def answer_all(indexes):
        return {index: CachedCall({"index": index}) for index in indexes}

    with Ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as ledger:
        requests = [{**asked, "seed": seed} for seed in (3, 4)]
        calls = asyncio.run(ledger.all_of("policy", requests, answer_all))
        assert [call.result for call in calls] == [{"index": 0}, {"index": 1}]
        recorded = ledger.look_up([call_key("policy", request) for request in requests]).values()
        assert sorted((call.request for call in recorded), key=lambda request: request["seed"]) == requests


def test_what_json_cannot_hold_is_no_request():
    with pytest.raises(ValueError, match="float"):
        call_key("policy", {"temperature": float("nan")})


KILLED = """
import asyncio, sys
from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.ledger import Ledger

ledger = Ledger(sys.argv[1])

async def one(n):
    async def perform():
        await asyncio.sleep(0.001 * (n % 7))
        return CachedCall({"n": n})

    await ledger.get_or_run("policy", {"n": n}, perform)
    print(n, flush=True)

async def main():
    gate = asyncio.Semaphore(256)
    async def gated(n):
        async with gate:
            await one(n)
    await asyncio.gather(*(gated(n) for n in range(20_000)))

asyncio.run(main())
"""


@pytest.fixture
def threads():
    with ThreadPoolExecutor(2) as pool:
        yield pool


def test_what_is_asked_while_a_batch_is_answered_is_the_next_batch(threads):
    sizes: list[int] = []
    go_on = threading.Event()

    def double(numbers):
        sizes.append(len(numbers))
        go_on.wait(120)
        return [2 * number for number in numbers]

    async def run():
        batches = GroupCommit(double, threads)
        first = asyncio.create_task(batches.ask(1))
        while not sizes:
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(batches.ask(n)) for n in range(2, 100)]
        await asyncio.sleep(0)
        go_on.set()
        return await asyncio.gather(first, *others)

    assert asyncio.run(run()) == [2 * n for n in range(1, 100)]
    assert sizes == [1, 98]


def test_a_crowd_is_taken_in_parts(threads):
    sizes: list[int] = []

    def same(numbers):
        sizes.append(len(numbers))
        return list(numbers)

    async def run():
        batches = GroupCommit(same, threads)
        return await asyncio.gather(*(batches.ask(n) for n in range(MOST_AT_ONCE + 1)))

    assert asyncio.run(run()) == list(range(MOST_AT_ONCE + 1))
    assert sizes == [MOST_AT_ONCE, 1]


def test_an_error_is_everybodys_of_its_batch_and_nobodys_of_the_next(threads):
    def broken(numbers):
        if 13 in numbers:
            raise OSError("no disk")
        return list(numbers)

    async def run():
        batches = GroupCommit(broken, threads)
        errors = await asyncio.gather(batches.ask(12), batches.ask(13), return_exceptions=True)
        return errors, await batches.ask(14)

    errors, later = asyncio.run(run())
    assert [type(error) for error in errors] == [OSError, OSError]
    assert later == 14


def test_who_is_cancelled_leaves_the_others_their_answers(threads):
    async def run():
        batches = GroupCommit(list, threads)
        gone, stays = asyncio.create_task(batches.ask(1)), asyncio.create_task(batches.ask(2))
        await asyncio.sleep(0)
        gone.cancel()
        return await stays

    assert asyncio.run(run()) == 2


def test_hundreds_of_acts_at_once_are_a_few_transactions(tmp_path, monkeypatch):
    sizes: list[int] = []
    write = Ledger.write
    monkeypatch.setattr(Ledger, "write", lambda self, entries: sizes.append(len(entries)) or write(self, entries))

    async def perform():
        await asyncio.sleep(0.01)
        return CachedCall({})

    async def run(ledger):
        return await asyncio.gather(*(ledger.get_or_run("policy", {"n": n}, perform) for n in range(256)))

    with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        assert len(asyncio.run(run(ledger))) == 256
        assert ledger.totals()["policy"].calls == 256
    assert sum(sizes) == 256
    assert len(sizes) < 64


def test_one_ledger_serves_one_event_loop_after_the_other(tmp_path):
    async def perform():
        return CachedCall({})

    with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        for n in range(3):
            asyncio.run(ledger.get_or_run("policy", {"n": n}, perform))
        assert ledger.totals()["policy"].calls == 3


@pytest.mark.soak
def test_no_act_that_was_returned_is_lost_by_a_kill(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    process = subprocess.Popen([sys.executable, "-c", KILLED, url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    returned = [int(process.stdout.readline()) for _ in range(600)]
    process.send_signal(signal.SIGKILL)
    returned += [int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    process.wait()
    process.stdout.close()
    with Ledger(url) as ledger:
        assert all(ledger.get(call_key("policy", {"n": n})) == CachedCall({"n": n}) for n in returned)
