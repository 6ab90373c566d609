"""The ledger: every paid or slow call once, keyed by the digest of all that determines it.

A call is a policy's turn, a judge's vote, a sandbox run. Its result is durable before its row counts as done, so a run
killed at any moment pays for nothing twice. SQLite by default, PostgreSQL by URL (``postgresql+psycopg://…``, extra
``postgres``). The ledger outlives runs, tables and recipes, and is the one place that keeps measured times.

Reads and writes of the same moment are one statement and one transaction, in a thread (group commit): hundreds of
calls in flight don't wait for hundreds of commits, and the event loop waits for none.
"""

import asyncio
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, count, islice
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.cached_calls import CachedCall, CallEntry, CallTable, to_json
from darkroom.pipelines.storage.storage_errors import AnswersPending

Q = TypeVar("Q")
A = TypeVar("A")
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.05, 1.0
"""Between two looks for a call that another process makes."""


MOST_AT_ONCE = 500
"""What comes later waits for a batch to end."""


async def all_finished(*calls: Awaitable[A]) -> list[A]:
    """The results. All are waited for even if one raises, so that what was paid for is on record."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return typing.cast("list[A]", results)


@dataclass(slots=True)
class GroupCommit(Generic[Q, A]):
    """``answer`` gets up to ``most`` requests and gives as many answers, in a thread of ``threads``. Requests that come
    within ``seconds`` are answered together. For one event loop at a time."""

    answer: Callable[[Sequence[Q]], Sequence[A]]
    threads: Executor
    most: int = MOST_AT_ONCE
    seconds: float = 0.0
    is_busy: bool = False
    _waiting: list[tuple[Q, asyncio.Future[A]]] = field(default_factory=list)

    async def ask(self, request: Q) -> A:
        """The answer to ``request``. Raises what ``answer`` raised for its batch."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        self._waiting.append((request, future))
        if not self.is_busy:
            self.is_busy = True
            loop.call_later(self.seconds, self._begin, loop)  # those who ask in the same turn of the loop come along
        return await future

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting[: self.most], self._waiting[self.most :]
        answered = loop.run_in_executor(self.threads, self.answer, [request for request, _ in batch])
        answered.add_done_callback(partial(self._finish, loop, [future for _, future in batch]))

    def _finish(
        self, loop: asyncio.AbstractEventLoop, futures: list[asyncio.Future[A]], answered: asyncio.Future[Sequence[A]]
    ) -> None:
        error = answered.exception()
        waiting = [not future.done() for future in futures]  # a cancelled caller waits for nothing
        if error is not None:
            for future in compress(futures, waiting):
                future.set_exception(error)
        else:
            for future, answer in compress(zip(futures, answered.result(), strict=True), waiting):
                future.set_result(answer)
        self.is_busy = bool(self._waiting)
        if self._waiting:
            loop.call_later(self.seconds, self._begin, loop)


class _Line(NamedTuple):
    """One event loop's way to the database."""

    reads: GroupCommit[Sequence[str], list[CachedCall | None]]
    claims: GroupCommit[Sequence[str], list[CachedCall | bool | None]]
    writes: GroupCommit[Sequence[CallEntry], list[CachedCall]]


class Ledger(CallTable):
    """Acts by key.

    >>> with Ledger("sqlite:///data/ledger.sqlite") as ledger:
    ...     call = await ledger.get_or_run("policy", request, run)  # runs once
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._running: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._threads = ThreadPoolExecutor(2, "ledger")
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()

    def close(self) -> None:
        """Finishes what is being written, ends all leases and closes every connection."""
        self._threads.shutdown()
        super().close()

    async def has(self, kind: str, request: Mapping[str, Any]) -> bool:
        """True if the call is on record."""
        (call,) = await self._line().reads.ask([call_key(kind, request)])
        return call is not None

    async def get_or_run(
        self, kind: str, request: Mapping[str, Any], run: Callable[[], Awaitable[CachedCall]]
    ) -> CachedCall:
        """The call that ``request`` determines: from the ledger, or made now and written before it is returned. While
        another makes it, this caller waits, and tries if that fails. Raises ``AnswersPending`` for one in a batch."""

        async def run_one(_: Sequence[int]) -> Mapping[int, CachedCall]:
            return {0: await run()}

        (call,) = await self.all_of(kind, [request], run_one)
        return call

    async def all_of(
        self,
        kind: str,
        requests: Sequence[Mapping[str, Any]],
        run: Callable[[Sequence[int]], Awaitable[Mapping[int, CachedCall]]],
    ) -> list[CachedCall]:
        """``get_or_run`` of several requests, run in groups: ``run`` is given the indexes of those that are not on
        record, makes one or more, and is asked again until none is left. What it made before it raised stays on
        record; what it made at once is durable together or not at all."""
        keys = [call_key(kind, request) for request in requests]
        line = self._line()
        async with self._held(keys):
            waits = (min(FIRST_WAIT_SECONDS * 2**n, LONGEST_WAIT_SECONDS) for n in count())
            calls = dict[int, CachedCall]()
            while missing := [index for index in range(len(keys)) if index not in calls]:
                claimed = await self._claim_shielded(line, [keys[index] for index in missing])
                answers = dict(zip(missing, claimed, strict=True))
                calls |= {index: answer for index, answer in answers.items() if isinstance(answer, CachedCall)}
                own = [index for index in missing if answers[index] is True]
                async with self._claimed([keys[index] for index in own]):
                    while own := [index for index in own if index not in calls]:
                        results = await run(own)
                        entries = [CallEntry(keys[n], kind, to_json(requests[n]), call) for n, call in results.items()]
                        calls |= zip(results, await line.writes.ask(entries), strict=True)
                if None in answers.values():
                    raise AnswersPending
                if any(answer is False for answer in answers.values()):
                    await asyncio.sleep(next(waits))
        return [calls[index] for index in range(len(keys))]

    async def claim_soon(self, keys: Sequence[str]) -> list[CachedCall | bool | None]:
        """``claim`` in one transaction with what others claim at the moment."""
        return await self._line().claims.ask(keys)

    async def _claim_shielded(self, line: _Line, keys: Sequence[str]) -> list[CachedCall | bool | None]:
        """Claim calls; a task that is cancelled meanwhile keeps no claim."""
        taking = asyncio.ensure_future(line.claims.ask(keys))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(partial(self._give_back, keys))
            raise

    def _give_back(self, keys: Sequence[str], taking: asyncio.Future[list[CachedCall | bool | None]]) -> None:
        if not taking.cancelled() and taking.exception() is None:
            claimed = [key for key, answer in zip(keys, taking.result(), strict=True) if answer is True]
            self._threads.submit(self.release, claimed)

    @asynccontextmanager
    async def _claimed(self, keys: Sequence[str]) -> AsyncIterator[None]:
        """End the leases of calls that were not made when something is raised; written ones hold none."""
        try:
            yield
        except BaseException:
            await asyncio.get_running_loop().run_in_executor(self._threads, self.release, keys)
            raise

    @asynccontextmanager
    async def _held(self, keys: Sequence[str]) -> AsyncIterator[None]:
        """No other task of this process makes any of these calls meanwhile."""
        async with AsyncExitStack() as held:
            for key in sorted(set(keys)):  # one order for all, or two that share keys would wait for each other
                await held.enter_async_context(self._running.setdefault(key, asyncio.Lock()))
            yield

    def _line(self) -> _Line:
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None:
            line = _Line(
                GroupCommit(_in_one(self.read), self._threads),
                GroupCommit(_in_one(self.claim), self._threads),
                GroupCommit(_in_one(self.write), self._threads),
            )
            self._lines[loop] = line
        return line


def _in_one(answer: Callable[[Sequence[Q]], Sequence[A]]) -> Callable[[Sequence[Sequence[Q]]], list[list[A]]]:
    """``answer`` for a batch of sequences: asked once for all, and shared out as they were asked for."""

    def answer_all(batch: Sequence[Sequence[Q]]) -> list[list[A]]:
        answers = iter(answer([question for part in batch for question in part]))
        return [list(islice(answers, len(part))) for part in batch]

    return answer_all


def call_key(kind: str, request: Mapping[str, Any]) -> str:
    """The key of a call: the digest of its kind and of all that determines it."""
    return digest({"kind": kind, "request": request})
