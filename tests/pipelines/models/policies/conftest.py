"""A real chat endpoint in the test's own process: it does what the test's script says, and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from darkroom.pipelines.models.messages import ImagePart, message
from darkroom.pipelines.models.policies import (
    BudgetPool,
    CompletionRequest,
    Endpoint,
    OpenAIPolicy,
    RecordedPolicy,
    calls,
)
from darkroom.pipelines.models.policies.limiter import SharedCalls
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.stage_runs import map_rows

PRICES = {"usd_per_million_prompt_tokens": 1000.0, "usd_per_million_completion_tokens": 2000.0}
"""10 and 5 tokens, as the endpoint counts them: two cents a call."""
Answer = Callable[["Asked", web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


@dataclass
class Asked:
    """``answer`` is called for each chat completion; ``in_flight`` counts those that it has not answered."""

    answer: Answer
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    """When each was asked, on the event loop's clock."""
    in_flight: int = 0
    most_in_flight: int = 0

    async def complete(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        self.at.append(asyncio.get_running_loop().time())
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self.answer(self, request, self.asked[-1])
        finally:
            self.in_flight -= 1


def completion(text: str = "It says 42.", **usage: int) -> web.Response:
    """A whole answer; 10 tokens of prompt and 5 of completion unless told otherwise."""
    counts = {"prompt_tokens": 10, "completion_tokens": 5, **usage}
    message = {"role": "assistant", "content": text}
    return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}], "usage": counts})


def refusal(status: int, message: str = "no", *, code: str | None = None, **headers: str) -> web.Response:
    """An error; ``retry_after="2"`` is the header ``Retry-After: 2``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.json_response({"error": {"message": message, "code": code}}, status=status, headers=named)


def saying(*answers: Callable[[], web.Response]) -> Answer:
    """One after the other; the last one for ever."""
    left = list(answers)

    async def answer(_: Asked, __: web.Request, ___: dict[str, Any]) -> web.Response:
        return (left.pop(0) if len(left) > 1 else left[0])()

    return answer


async def cut_off(_: Asked, request: web.Request, __: dict[str, Any]) -> web.StreamResponse:
    """Half an answer, then the connection is gone."""
    whole = json.dumps({"choices": [{"message": {"content": "x" * 1000}}]}).encode()
    response = web.StreamResponse(headers={"content-type": "application/json", "content-length": str(len(whole))})
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    assert request.transport is not None
    request.transport.close()
    return response


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Asked]:
    """The endpoint, listening."""
    endpoint = Asked(answer)
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", endpoint.complete)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    endpoint.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield endpoint
    finally:
        await runner.cleanup()


@pytest.fixture
def chat() -> SimpleNamespace:
    """The endpoint and what it may answer."""
    return SimpleNamespace(serving=serving, completion=completion, refusal=refusal, saying=saying, cut_off=cut_off)


@pytest.fixture
def turn(make_case) -> Callable[..., CompletionRequest]:
    """A turn with a question and, if wanted, images."""
    sample = make_case().sample

    def make(
        question: str = "What does it say?", images: tuple[ImageRef, ...] = (), seed: int = 7
    ) -> CompletionRequest:
        said = (message("system", "Be brief."), message("user", *map(ImagePart, images), question))
        return CompletionRequest(said, ("</code>",), seed, Task("t", "crop", sample, (), {}, said, seed))

    return make


@pytest.fixture
def open_policy(store, monkeypatch) -> Callable[..., Any]:
    """A policy at an endpoint, closed in the end; waits that we choose are short."""
    monkeypatch.setattr(calls, "FIRST_WAIT_SECONDS", 0.01)

    @asynccontextmanager
    async def opened(
        url: str, *, budget_pool: BudgetPool | None = None, shared: SharedCalls | None = None, **settings: Any
    ) -> AsyncIterator[OpenAIPolicy]:
        policy = OpenAIPolicy(Endpoint(url, "model", **settings), store, budget_pool=budget_pool, shared=shared)
        try:
            yield policy
        finally:
            await policy.close()

    return opened


@pytest.fixture
def worked(open_policy, turn, ledger: Ledger) -> Callable[..., Awaitable[list[object]]]:
    """Rows as a stage works on them, paid from the pool; ``asked`` gets the seeds that the endpoint was asked."""

    async def answer(_: Asked, __: web.Request, ___: dict[str, Any]) -> web.Response:
        await asyncio.sleep(0.02)
        return completion()

    async def run(pool: BudgetPool, rows: range, asked: list[int]) -> list[object]:
        async with serving(answer) as endpoint:
            try:
                async with open_policy(endpoint.url, budget_pool=pool, concurrency=4, **PRICES) as policy:
                    recorded = RecordedPolicy(policy, ledger)
                    return await map_rows(rows, lambda seed: recorded.write(turn(seed=seed)), concurrency=8)
            finally:
                asked += [body["seed"] for body in endpoint.asked]

    return run
