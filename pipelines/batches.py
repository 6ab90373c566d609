"""What many tasks ask of one slow thing at the same moment, asked once: a database's transactions, above all.

While a batch is being answered the next one gathers, so batches grow with the load and a single request waits for
nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import compress
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")
MOST_AT_ONCE = 500
"""SQLite takes at most 32,766 values in a statement."""


class Batches(Generic[Q, A]):
    """``answer`` gets requests and gives as many answers, in a thread of ``threads``. For one event loop."""

    def __init__(self, answer: Callable[[Sequence[Q]], Sequence[A]], threads: Executor) -> None:
        self._answer, self._threads = answer, threads
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._is_busy = False

    async def ask(self, request: Q) -> A:
        """The answer to ``request``. Raises what ``answer`` raised for its batch."""
        return await self._put(request)

    async def ask_all(self, requests: Sequence[Q]) -> list[A]:
        """The answers to ``requests``, which may be answered in several batches. Raises the first fault."""
        places = [self._put(request) for request in requests]
        return await asyncio.gather(*places)

    def _put(self, request: Q) -> asyncio.Future[A]:
        loop = asyncio.get_running_loop()
        place: asyncio.Future[A] = loop.create_future()
        self._waiting.append((request, place))
        if not self._is_busy:
            self._is_busy = True
            loop.call_soon(self._begin, loop)  # those who ask in the same turn of the loop come along
        return place

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
        answered = loop.run_in_executor(self._threads, self._answer, [request for request, _ in batch])
        answered.add_done_callback(partial(self._finish, loop, [place for _, place in batch]))

    def _finish(
        self, loop: asyncio.AbstractEventLoop, places: list[asyncio.Future[A]], answered: asyncio.Future[Sequence[A]]
    ) -> None:
        fault = answered.exception()
        waiting = [not place.done() for place in places]  # who was cancelled waits for nothing
        if fault is not None:
            for place in compress(places, waiting):
                place.set_exception(fault)
        else:
            for place, answer in compress(zip(places, answered.result(), strict=True), waiting):
                place.set_result(answer)
        self._is_busy = bool(self._waiting)
        if self._waiting:
            self._begin(loop)
