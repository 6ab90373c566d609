"""A chat endpoint that answers after a set time, refuses what it is told to refuse, and counts what it was asked.

    python -m benchmarks.mock_server        # prints its port

Answers depend on the conversation alone. A conversation with the word REFUSED gets 400, whoever is one too many while
a cap is set gets 429, at once. ``POST /reset {"cap": 32, "seconds": 0.05}`` forgets all counts, ``GET /counts`` tells
them. A call whose client is gone is not finished, as with vLLM.
"""

import asyncio
import hashlib
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

RETRY_AFTER_SECONDS = 1


@dataclass
class Counts:
    cap: int | None = None
    seconds: float = 0.05
    in_flight: int = 0
    most_in_flight: int = 0
    n_calls: int = 0
    n_rejected: int = 0
    tries: Counter[str] = field(default_factory=Counter)
    """How often each conversation came, answered or not."""
    served: Counter[str] = field(default_factory=Counter)
    """How often each conversation was answered: what a real endpoint would have been paid for."""


_COUNTS = web.AppKey("counts", Counts)


async def complete(request: web.Request) -> web.Response:
    counts = request.app[_COUNTS]
    counts.n_calls += 1
    counts.in_flight += 1
    counts.most_in_flight = max(counts.most_in_flight, counts.in_flight)
    try:
        return await _answer(await request.read(), counts)
    finally:
        counts.in_flight -= 1


async def _answer(body: bytes, counts: Counts) -> web.Response:
    name = hashlib.sha256(body).hexdigest()[:16]
    counts.tries[name] += 1
    if counts.cap is not None and counts.in_flight > counts.cap:
        counts.n_rejected += 1
        headers = {"retry-after": str(RETRY_AFTER_SECONDS)}
        return web.json_response({"error": {"message": "too many requests"}}, status=429, headers=headers)
    await asyncio.sleep(counts.seconds)
    if b"REFUSED" in body:
        return web.json_response({"error": {"message": "this request is wrong in itself"}}, status=400)
    counts.served[name] += 1
    return web.Response(body=_completion(name), content_type="application/json")


def _completion(name: str) -> bytes:
    message = {"role": "assistant", "content": f"<think>I count.</think><answer>{name}</answer>"}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": None}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    head = {"id": name, "object": "chat.completion", "created": 0, "model": "mock"}
    return json.dumps({**head, "choices": [choice], "usage": usage}).encode()


async def reset(request: web.Request) -> web.Response:
    settings: dict[str, Any] = await request.json()
    fresh = Counts(**settings, in_flight=request.app[_COUNTS].in_flight)
    vars(request.app[_COUNTS]).update(vars(fresh))
    return web.json_response({})


async def tell(request: web.Request) -> web.Response:
    return web.json_response(vars(request.app[_COUNTS]))


async def models(_: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": []})


async def serve() -> None:
    app = web.Application(client_max_size=2**26)
    app[_COUNTS] = Counts()
    app.router.add_post("/v1/chat/completions", complete)
    app.router.add_get("/v1/models", models)
    app.router.add_post("/reset", reset)
    app.router.add_get("/counts", tell)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    assert runner.addresses, "no port"
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started it is gone
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve())
