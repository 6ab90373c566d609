"""Requests of the ledger: many at the same moment become one transaction, many seeds of one request one hash.

``Batches``: while a batch is being answered the next one gathers, so batches grow with the load and a single request
does not wait. ``Seeded``: a request of thousands of characters and eight votes would otherwise be spelled sixteen
times.

    seeded = Seeded("policy", {"messages": […], "stop": []})
    seeded.key(7) == act_key("policy", {"messages": […], "seed": 7, "stop": []})     # for a tenth of the time
"""

import asyncio
import hashlib
import json
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import compress
from typing import Any, Generic, TypeVar

from darkroom.pipelines.records.digest import canonical

Q = TypeVar("Q")
A = TypeVar("A")
MOST_AT_ONCE = 500
"""What comes later waits for a batch to end."""


async def all_finished(*acts: Awaitable[A]) -> list[A]:
    """The results. All are waited for even if one raises, so that what was paid for is on record."""
    results = await asyncio.gather(*acts, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return typing.cast("list[A]", results)


class Batches(Generic[Q, A]):
    """``answer`` gets requests and gives as many answers, in a thread of ``threads``. For one event loop."""

    def __init__(self, answer: Callable[[Sequence[Q]], Sequence[A]], threads: Executor) -> None:
        self._answer, self._threads = answer, threads
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._is_busy = False

    async def ask(self, request: Q) -> A:
        """The answer to ``request``. Raises what ``answer`` raised for its batch."""
        loop = asyncio.get_running_loop()
        place: asyncio.Future[A] = loop.create_future()
        self._waiting.append((request, place))
        if not self._is_busy:
            self._is_busy = True
            loop.call_soon(self._begin, loop)  # those who ask in the same turn of the loop come along
        return await place

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
        answered = loop.run_in_executor(self._threads, self._answer, [request for request, _ in batch])
        answered.add_done_callback(partial(self._finish, loop, [place for _, place in batch]))

    def _finish(
        self, loop: asyncio.AbstractEventLoop, places: list[asyncio.Future[A]], answered: asyncio.Future[Sequence[A]]
    ) -> None:
        error = answered.exception()
        waiting = [not place.done() for place in places]  # who was cancelled waits for nothing
        if error is not None:
            for place in compress(places, waiting):
                place.set_exception(error)
        else:
            for place, answer in compress(zip(places, answered.result(), strict=True), waiting):
                place.set_result(answer)
        self._is_busy = bool(self._waiting)
        if self._waiting:
            self._begin(loop)


FIELD = "seed"


class Seeded:
    """``request``, to which only ``seed`` is missing, as an act of ``kind``."""

    def __init__(self, kind: str, request: Mapping[str, Any]) -> None:
        before = {name: value for name, value in request.items() if name < FIELD}
        after = {name: value for name, value in request.items() if name > FIELD}
        head, self._tail = _around(canonical(before), canonical(after), f'"{FIELD}":', ",")
        self._hash = hashlib.sha256(f'{{"kind":{canonical(kind)},"request":{head}'.encode("utf-8", "surrogatepass"))
        self._text = _around(spelled(before), spelled(after), f'"{FIELD}": ', ", ")

    def key(self, seed: int) -> str:
        """The key of the act with this seed."""
        sha256 = self._hash.copy()
        sha256.update(f"{seed}{self._tail}}}".encode("utf-8", "surrogatepass"))
        return sha256.hexdigest()

    def text(self, seed: int) -> str:
        """The request with this seed as the ledger keeps it."""
        head, tail = self._text
        return f"{head}{seed}{tail}"


def spelled(request: Mapping[str, Any]) -> str:
    """A request as the ledger keeps it. ASCII: a model may write what no database takes."""
    return json.dumps(request, sort_keys=True)


def _around(before: str, after: str, field: str, comma: str) -> tuple[str, str]:
    """What stands before and after the value of ``field`` in an object that has the members of all three."""
    head = f"{before[:-1]}{comma if before != '{}' else ''}{field}"
    return head, f"{comma}{after[1:]}" if after != "{}" else "}"
