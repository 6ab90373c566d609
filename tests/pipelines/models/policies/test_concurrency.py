"""The limiter: what an endpoint bears is found, kept to, and found again."""

from __future__ import annotations

import asyncio
from random import Random
from types import SimpleNamespace

import pytest

from darkroom.pipelines.models.policies import limiter as limiter_module
from darkroom.pipelines.models.policies.limiter import FIRST_LIMIT, ConcurrencyLimiter


def test_a_server_that_takes_32_at_once_answers_all(chat, open_policy, turn):
    rejected = 0

    async def answer(endpoint, request, body):
        nonlocal rejected
        if endpoint.in_flight > 32:
            rejected += 1
            return chat.refusal(429, retry_after="1")
        await asyncio.sleep(0.02)
        return chat.completion()

    async def run():
        async with chat.serving(answer) as endpoint, open_policy(endpoint.url, concurrency=256) as policy:
            return await asyncio.gather(*(policy.write(turn(seed=seed)) for seed in range(300)))

    assert {completion.text for completion in asyncio.run(run())} == {"It says 42."}
    assert rejected


class OwnTime(asyncio.SelectorEventLoop):
    """A loop whose clock stands while anything can run, then jumps to the next timer: no machine is too slow for it."""

    def __init__(self):
        super().__init__()
        self._now, select = 0.0, self._selector.select

        def jump(timeout):
            self._now += timeout or 0.0
            return select(0)

        self._selector.select = jump

    def time(self):
        return self._now


@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_takes_32_at_once_rejects_at_most_a_twentieth(seed, monkeypatch):
    n_asked = rejected = in_flight = 0
    limiter, rng = ConcurrencyLimiter(256), Random(seed)

    async def call(seconds):
        nonlocal n_asked, rejected, in_flight
        is_again = False
        while True:
            ticket = await limiter.enter(first=is_again)
            n_asked += 1
            if is_again := in_flight == 32:
                rejected += 1
                await asyncio.sleep(0.002)
                limiter.leave(ticket, "busy", 1.0)
                continue
            in_flight += 1
            await asyncio.sleep(seconds)
            in_flight -= 1
            limiter.leave(ticket, "served")
            return

    async def calls():
        await asyncio.gather(*(call(rng.uniform(0.01, 0.03)) for _ in range(1000)))

    with asyncio.Runner(loop_factory=OwnTime) as runner:
        monkeypatch.setattr(limiter_module, "time", SimpleNamespace(monotonic=runner.get_loop().time))
        runner.run(calls())
    assert n_asked == 1000 + rejected
    assert 0 < rejected <= n_asked * 0.05


def test_no_more_calls_are_in_flight_than_the_endpoint_was_given(chat, open_policy, turn):
    async def answer(endpoint, request, body):
        await asyncio.sleep(0.02)
        return chat.completion()

    async def run():
        async with chat.serving(answer) as endpoint, open_policy(endpoint.url, concurrency=5) as policy:
            await asyncio.gather(*(policy.write(turn(seed=seed)) for seed in range(40)))
            return endpoint.most_in_flight

    assert asyncio.run(run()) == 5


def test_where_calls_per_minute_are_limited_the_gate_waits_until_the_minute_is_over(chat, open_policy, turn):
    rejected = 0

    async def answer(endpoint, request, body):
        nonlocal rejected
        in_window = int(endpoint.at[-1] - endpoint.at[0])
        if sum(int(at - endpoint.at[0]) == in_window for at in endpoint.at) > 60:
            rejected += 1
            return chat.refusal(429, retry_after="1")
        return chat.completion()

    async def run():
        async with chat.serving(answer) as endpoint, open_policy(endpoint.url, concurrency=64) as policy:
            return await asyncio.gather(*(policy.write(turn(seed=seed)) for seed in range(180)))

    assert len(asyncio.run(run())) == 180
    assert rejected <= 120


async def pass_through(limiter: ConcurrencyLimiter, result: str) -> None:
    limiter.leave(await limiter.enter(), result)


async def fill(limiter: ConcurrencyLimiter) -> list[int]:
    return [await limiter.enter() for _ in range(int(limiter.limit))]


def test_the_ramp_grows_by_half_with_each_round():
    async def work():
        limiter = ConcurrencyLimiter(256)
        entered: list[int] = []

        async def one() -> None:
            entered.append(await limiter.enter())

        tasks = [asyncio.create_task(one()) for _ in range(400)]
        for in_flight in (16, 24, 36, 54, 81, 121, 68):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert len(entered) == in_flight
            round_over, entered[:] = list(entered), []
            for began in round_over:
                limiter.leave(began, "served")
        await asyncio.gather(*tasks)

    asyncio.run(work())


def test_one_crowd_of_rejections_is_one_cut():
    async def work():
        limiter = ConcurrencyLimiter(256)
        for began in await fill(limiter):
            limiter.leave(began, "busy")
        assert limiter.limit == pytest.approx(FIRST_LIMIT * 2 / 3)

    asyncio.run(work())


def test_after_a_cut_the_gate_opens_by_about_one_a_round():
    async def work():
        limiter = ConcurrencyLimiter(256)
        entered: list[int] = []

        async def one() -> None:
            entered.append(await limiter.enter())

        tasks = [asyncio.create_task(one()) for _ in range(200)]
        await asyncio.sleep(0)
        limiter.leave(entered.pop(), "busy")
        for n_rounds in range(6):
            assert limiter.limit == pytest.approx(10.7 + 0.95 * max(0, n_rounds - 1), abs=0.3)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            round_over, entered[:] = list(entered), []
            for began in round_over:
                limiter.leave(began, "served")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(work())


def test_a_limit_that_nothing_reaches_stays():
    async def work():
        limiter = ConcurrencyLimiter(256)
        for _ in range(100):
            await pass_through(limiter, "served")
        assert limiter.limit == FIRST_LIMIT

    asyncio.run(work())


def test_the_gate_never_closes_for_good():
    async def work():
        limiter = ConcurrencyLimiter(256)
        for _ in range(50):
            await asyncio.wait_for(limiter.enter(), 60)
            limiter.leave(limiter._n_cuts, "busy")
        assert limiter.limit == 1

    asyncio.run(work())


def test_who_is_cancelled_while_waiting_takes_no_place():
    async def work():
        limiter = ConcurrencyLimiter(1)
        began = await limiter.enter()
        waiting = [asyncio.create_task(limiter.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        limiter.leave(began, "served")
        waiting[1].cancel()  # it was given the place in this very turn of the loop
        assert await asyncio.wait_for(waiting[2], 60) == 0
        assert limiter.n_in_flight == 1

    asyncio.run(work())


def test_a_retry_goes_before_those_who_wait_for_their_first_try():
    async def work():
        limiter, order = ConcurrencyLimiter(1), []
        began = await limiter.enter()

        async def wait(name: str, *, first: bool) -> None:
            entered = await limiter.enter(first=first)
            order.append(name)
            limiter.leave(entered, "served")

        tasks = [asyncio.create_task(wait("new", first=False)), asyncio.create_task(wait("retry", first=True))]
        await asyncio.sleep(0)
        limiter.leave(began, "served")
        await asyncio.gather(*tasks)
        assert order == ["retry", "new"]

    asyncio.run(work())
