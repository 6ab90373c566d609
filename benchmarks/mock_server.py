"""A chat endpoint that answers after a set time, refuses what it is told to refuse, and counts what it was asked.

    python -m benchmarks.mock_server        # prints its port

Answers depend on the conversation alone. A conversation with the word REFUSED gets 400, whoever is one too many while
a cap is set gets 429, at once. ``POST /reset {"cap": 32, "seconds": 0.05}`` forgets all counts, ``GET /counts`` tells
them. A call whose client is gone is not finished, as with vLLM.

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


@dataclass
class Counts:
    cap: int | None = None
    seconds: float = 0.05
    plan: str = ""
    """What is answered to a conversation that asks for JSON by a schema."""
    in_flight: int = 0
    most_in_flight: int = 0
    n_calls: int = 0
    n_rejected: int = 0
    seconds_with: Counter[int] = field(default_factory=Counter)
    """How long so many calls were in flight."""
    changed_at: float = 0.0
    tries: Counter[str] = field(default_factory=Counter)
    """How often each conversation came, answered or not."""
    served: Counter[str] = field(default_factory=Counter)
    """How often each conversation was answered: what a real endpoint would have been paid for."""


class Connection(asyncio.Protocol):
    """One client's, kept alive; one request at a time."""

    def __init__(self, counts: Counts, loop: asyncio.AbstractEventLoop) -> None:
        self._counts, self._loop = counts, loop
        self._read = bytearray()
        self._answering: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, fault: Exception | None) -> None:
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
            self._handle(head.split(b" ", 2)[1].decode(), body)

    def _handle(self, path: str, body: bytes) -> None:
        if path.endswith("/chat/completions"):
            self._complete(body)
        elif path == "/reset":
            vars(self._counts).update(vars(Counts(**json.loads(body), in_flight=self._counts.in_flight)))
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
        name = hashlib.sha256(body).hexdigest()[:16]
        counts.tries[name] += 1
        if counts.cap is not None and counts.in_flight > counts.cap:
            counts.n_rejected += 1
            self._leave()
            wait = f"retry-after: {RETRY_AFTER_SECONDS}\r\n"
            self._send("429 Too Many Requests", {"error": {"message": "too many requests"}}, wait)
        else:
            self._answering = self._loop.call_later(counts.seconds, self._answer, name, body)

    def _answer(self, name: str, body: bytes) -> None:
        self._leave()
        if b"REFUSED" in body:
            self._send("400 Bad Request", {"error": {"message": "this request is wrong in itself"}})
        else:
            self._counts.served[name] += 1
            said = (
                self._counts.plan if b'"response_format"' in body else f"<think>I count.</think><answer>{name}</answer>"
            )
            self._send("200 OK", _completion(name, said))

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


def _completion(name: str, said: str) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}, "logprobs": None}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    head = {"id": name, "object": "chat.completion", "created": 0, "model": "mock"}
    return {**head, "choices": [choice], "usage": usage}


async def serve() -> None:
    loop, counts = asyncio.get_running_loop(), Counts()
    server = await loop.create_server(lambda: Connection(counts, loop), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started it is gone
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
