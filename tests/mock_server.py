"""A chat endpoint that answers after a set time, refuses on request, and counts the calls.

    python -m tests.mock_server        # prints its port

Answers depend on the conversation and the seed alone: the ``i``-th of ``n`` is that of the request with the seed
``i`` higher, as with vLLM. A conversation with the word REFUSED gets 400, whoever is one too many while a cap is set
gets 429, at once. ``POST /reset {"cap": 32, "seconds": 0.05}`` forgets all counts, ``GET /counts`` tells them, ``POST
/hold {"n_more": 8}`` lets later calls wait. A call whose client is gone is not finished, as with vLLM.

It reads HTTP by itself and knows as much of it as clients of this repository send (a length, no chunks): a framework
would take as much CPU time per call as the client that is measured.
"""

import asyncio
import hashlib
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

RETRY_AFTER_SECONDS = 1
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
# no text can hold these: its quotes are escaped
_SEED = re.compile(rb'"seed": ?(\d+)')
_N = re.compile(rb',? ?"n": ?(\d+)')
_NO_TOKENS = {"prompt_tokens": 0, "completion_tokens": 0}
_HICCUPS: list[dict[str, Any]] = [
    {"error": {"code": 502, "message": "the upstream is gone"}},
    {"choices": [{"finish_reason": "error", "message": {"role": "assistant", "content": "half an ans"}}]},
    {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": ""}}], "usage": _NO_TOKENS},
    {"choices": [{"finish_reason": "stop", "error": {"code": 429}, "message": {"role": "assistant", "content": ""}}]},
]
"""OpenRouter's and LiteLLM's, SGLang's, an engine's that was restarted, a gateway's limit within a choice."""


@dataclass
class Counts:
    cap: int | None = None
    seconds: float = 0.05
    plan: str = ""
    """The answer to a conversation that asks for JSON by a schema, NAME replaced by the answer's name; a vote
    where it is empty."""
    takes_n: bool = True
    """True if a request gets as many answers as it asks for; else it gets one."""
    most_served: int | None = None
    """After so many answers calls wait, until this is changed or their client is gone."""
    in_flight: int = 0
    most_in_flight: int = 0
    n_calls: int = 0
    n_rejected: int = 0
    hiccups: bool = False
    """True if the first try of every fifth answer fails as gateways fail: within an HTTP 200."""
    n_hiccups: int = 0
    seconds_with: Counter[int] = field(default_factory=Counter)
    """Seconds in which so many calls were in flight."""
    changed_at: float = 0.0
    tries: Counter[str] = field(default_factory=Counter)
    """Requests for each answer, given or not."""
    served: Counter[str] = field(default_factory=Counter)
    """Times each answer was given: what a real endpoint would have been paid for."""


class Connection(asyncio.Protocol):
    """One client's, kept alive unless it asks for the end; one request at a time."""

    def __init__(self, counts: Counts, loop: asyncio.AbstractEventLoop) -> None:
        self._counts, self._loop = counts, loop
        self._read = bytearray()
        self._answering: asyncio.TimerHandle | None = None
        self._ends = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._answering is not None:
            self._answering.cancel()
            self._leave()

    def data_received(self, data: bytes) -> None:
        self._read += data
        end = self._read.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self._read, 0, end)
        size = end + 4 + (int(length[1]) if length else 0)
        if len(self._read) >= size:
            head, body = bytes(self._read[:end]), bytes(self._read[end + 4 : size])
            del self._read[:size]
            self._ends = _CLOSE.search(head) is not None
            self._handle(head.split(b" ", 2)[1].decode(), body)

    def _handle(self, path: str, body: bytes) -> None:
        if path.endswith("/chat/completions"):
            self._complete(body)
        elif path == "/reset":
            vars(self._counts).update(vars(Counts(**json.loads(body), in_flight=self._counts.in_flight)))
            self._send("200 OK", {})
        elif path == "/hold":
            n_more = json.loads(body)["n_more"]
            self._counts.most_served = None if n_more is None else self._counts.served.total() + n_more
            self._send("200 OK", {})
        elif path == "/counts":
            self._send("200 OK", vars(self._counts))
        else:
            self._send("200 OK", {"object": "list", "data": []})

    def _complete(self, body: bytes) -> None:
        counts = self._counts
        counts.n_calls += 1
        self._count(+1)
        counts.most_in_flight = max(counts.most_in_flight, counts.in_flight)
        names = _names(body, takes_n=counts.takes_n)
        counts.tries.update(names)
        if counts.cap is not None and counts.in_flight > counts.cap:
            counts.n_rejected += 1
            self._leave()
            wait = f"retry-after: {RETRY_AFTER_SECONDS}\r\n"
            self._send("429 Too Many Requests", {"error": {"message": "too many requests"}}, wait)
        else:
            self._answering = self._loop.call_later(counts.seconds, self._answer, names, body)

    def _answer(self, names: list[str], body: bytes) -> None:
        if self._counts.most_served is not None and self._counts.served.total() >= self._counts.most_served:
            self._answering = self._loop.call_later(self._counts.seconds, self._answer, names, body)
            return
        self._leave()
        if b"REFUSED" in body:
            self._send("400 Bad Request", {"error": {"message": "this request is wrong in itself"}})
        elif self._counts.hiccups and _fails_first(names[0]) and self._counts.tries[names[0]] == 1:
            self._counts.n_hiccups += 1
            self._send("200 OK", _HICCUPS[int(names[0], 16) % len(_HICCUPS)])
        else:
            self._counts.served.update(names)
            say = self._planned if b'"response_format"' in body else _said
            self._send("200 OK", _completion([say(name) for name in names]))

    def _planned(self, name: str) -> str:
        if self._counts.plan:
            return self._counts.plan.replace("NAME", name)
        return f'{{"reason": "{name}", "verdict": {"true" if _says_yes(name) else "false"}}}'

    def _leave(self) -> None:
        self._answering = None
        self._count(-1)

    def _count(self, change: int) -> None:
        counts, now = self._counts, self._loop.time()
        counts.seconds_with[counts.in_flight] += now - counts.changed_at
        counts.in_flight += change
        counts.changed_at = now

    def _send(self, status: str, said: dict[str, Any], headers: str = "") -> None:
        body = json.dumps(said).encode()
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
        self._transport.write(head.encode() + body)
        if self._ends:
            self._transport.close()


def _names(body: bytes, *, takes_n: bool) -> list[str]:
    """Names of the answers that a request asks for: digests of all but ``n``."""
    found, n = _SEED.search(body), _N.search(body)
    asked = _N.sub(b"", body)
    if found is None or n is None or not takes_n:
        return [_name(asked)]
    before, after = asked.split(found[0], 1)
    seeds = range(int(found[1]), int(found[1]) + int(n[1]))
    return [_name(b"%s%s%d%s" % (before, found[0][: -len(found[1])], seed, after)) for seed in seeds]


def _name(asked: bytes) -> str:
    return hashlib.sha256(asked).hexdigest()[:16]


def _says_yes(name: str) -> bool:
    """True of seven in eleven names."""
    return int(name, 16) % 11 < 7


def _fails_first(name: str) -> bool:
    return int(name, 16) % 5 == 0


def _said(name: str) -> str:
    return f"<think>{name}</think><answer>{'yes' if _says_yes(name) else 'no'}</answer>"


def _completion(said: list[str]) -> dict[str, Any]:
    choices = [
        {"index": n, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, "logprobs": None}
        for n, text in enumerate(said)
    ]
    usage = {"prompt_tokens": 100, "completion_tokens": 20 * len(said), "total_tokens": 100 + 20 * len(said)}
    head = {"id": "mock", "object": "chat.completion", "created": 0, "model": "mock"}
    return {**head, "choices": choices, "usage": usage}


async def serve() -> None:
    loop, counts = asyncio.get_running_loop(), Counts()
    server = await loop.create_server(lambda: Connection(counts, loop), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started it is gone
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
