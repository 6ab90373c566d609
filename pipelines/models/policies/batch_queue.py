"""Batches: single-turn requests in files, which OpenAI answers within a day at half the price, or `vllm run-batch`.

A line of a file, and of its answers, as both have them:

    {"custom_id": "8f…-17", "method": "POST", "url": "/v1/chat/completions", "body": {"model": …, "messages": …}}
    {"custom_id": "8f…-17", "response": {"status_code": 200, "body": {"choices": …, "usage": …}}, "error": null}

A ``custom_id`` is of one try: what comes late is no answer to the next one. A line without a use is ignored. A request
without an answer is free when its batch has ended, and goes into the next one, or is sent at once where batches are
off; after ``Endpoint.max_retries`` errors it fails. A budget is looked at before a file is sent.
"""

import asyncio
import json
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from shutil import copyfileobj
from socket import gethostname
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast
from uuid import uuid4

from darkroom.pipelines.models.policies.calls import MAX_CHARACTERS, TRY_ERRORS, Failure, failure_of
from darkroom.pipelines.models.policies.openai import OpenAIPolicy
from darkroom.pipelines.models.policies.policy import (
    CompletionRequest,
    NoAnswer,
    PolicyError,
    PolicyUnavailable,
    SentImage,
    StatusError,
    reseeded,
)
from darkroom.pipelines.records import Usage, from_row, to_row
from darkroom.pipelines.storage.atomic_write import whole_file
from darkroom.pipelines.storage.batch_table import KIND, Batch, BatchRequest, BatchTable, seeded_calls
from darkroom.pipelines.storage.cached_calls import CachedCall, CallEntry, to_json
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.row_files import by_key
from darkroom.pipelines.storage.storage_errors import AnswersPending

MAX_REQUESTS, MAX_BYTES = 50_000, 200 * 10**6
"""Of a file, by the Batch API."""
SETTLED_SECONDS = 60.0
"""After which a batch that the service does not list was never created."""
GONE_SECONDS = 30 * 86_400.0
"""After which the service has deleted a batch's files, and the batch that it does not know is gone."""
_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
"""States of a batch at the service that are its last."""
_LINES_AT_ONCE = 500
_LINE = b'{"custom_id":"%s","method":"POST","url":"/v1/chat/completions","body":%s}\n'
_NAME = re.compile(rb'"custom_id"\s*:\s*"(\w+)-')
_LINE_BYTES = 200
"""A line's, besides its body, at most."""


class BatchQueue:
    """The requests of ``owner``, a role in a stage on a shard: ``collect`` comes first, ``submit`` last. ``folder``:
    where files for `vllm run-batch` are left, and its answers are looked for, below the model's name."""

    def __init__(self, policy: OpenAIPolicy, ledger: Ledger, folder: Path, owner: tuple[str, str, str]) -> None:
        self._policy, self._ledger, self._owner, self._table = policy, ledger, owner, BatchTable(ledger)
        self._folder = str(folder / re.sub(r"[^\w.-]", "_", policy.endpoint.model))
        self._failures: dict[str, tuple[Failure, int]] = {}
        """With the number of tries, by the first call of each request."""
        self._asked: set[str] = set()
        """All calls that were ever put into a batch here."""
        self._begin_file()
        self._where = ""

    def takes(self, request: CompletionRequest) -> bool:
        """Return whether a request may wait: it begins a conversation, and batches are on."""
        return not request.rounds and self._policy.endpoint.batch != "off"

    async def ask(self, request: CompletionRequest, asked: Mapping[str, Any], n: int) -> list[CachedCall]:
        """The recorded answers to a request, all ``n``; ``asked`` is how the ledger keeps it. Raises ``AnswersPending``
        where one is not recorded, and puts it into the next batch unless another process has it; ``PolicyError`` where
        batches have answered with errors."""
        calls = seeded_calls(asked, n)
        answers = await self._ledger.claim_soon([key for key, _ in calls])
        if all(isinstance(answer, CachedCall) for answer in answers):
            return cast("list[CachedCall]", answers)
        own = [number for number, (key, _) in enumerate(calls) if answers[number] is True and key not in self._asked]
        for _, numbers in groupby(enumerate(own), lambda pair: pair[1] - pair[0]):  # seeds in a row
            group = [number for _, number in numbers]
            await self._add(reseeded(request, group[0]), [calls[number] for number in group])
        raise AnswersPending

    async def submit(self) -> str:
        """Send what was asked; returns where answers are waited for, in words, if any. Raises ``PolicyUnavailable``."""
        if not self._requests:
            return self._where
        self._policy.budget_pool.require()
        name, requests, file, at = self._name, self._requests, self._file, self._policy.endpoint
        self._begin_file()
        with file:
            remote, address = (gethostname(), self._folder) if at.batch == "folder" else ("", at.base_url)
            batch = Batch(name, remote, address, *self._owner, time.time())
            await self._claim(name)
            await asyncio.to_thread(self._table.begin, batch, requests)
            file.seek(0)
            if at.batch == "folder":
                await asyncio.to_thread(_copy, file, self._requests_file(batch))
            else:
                await self._send(file, name)
        self._where = self._where_of(batch)
        return self._where

    async def collect(self) -> None:
        """Record what batches have answered, free what they will not. Raises ``PolicyUnavailable`` if they refused."""
        # other processes send or read those that they have claimed
        own = [
            batch for batch in await asyncio.to_thread(self._table.open, *self._owner) if await self._claim(batch.batch)
        ]
        await asyncio.to_thread(self._collect_files, [batch for batch in own if batch.address == self._folder])
        for batch in own:
            if batch.address == self._policy.endpoint.base_url:
                try:
                    await self._collect_remote(batch)
                except (StatusError, NoAnswer) as error:
                    if not (isinstance(error, StatusError) and error.status == 404 and _is_older(batch, GONE_SECONDS)):
                        raise self._unavailable(f"batch {batch.remote or batch.batch} cannot be read", error) from None
                    await asyncio.to_thread(self._table.end, batch.batch)
        left = await asyncio.to_thread(self._table.open, *self._owner)
        self._where = self._where_of(left[0]) if left else ""
        await asyncio.to_thread(self._policy.budget_pool.settle)

    def close(self) -> None:
        """Forgets what was not sent: its calls are free when the ledger is closed."""
        self._file.close()

    def _begin_file(self) -> None:
        self._name, self._requests = uuid4().hex, list[BatchRequest]()
        self._file = cast(BinaryIO, TemporaryFile())  # noqa: SIM115  # closed by `submit` or `close`

    async def _add(self, request: CompletionRequest, calls: list[tuple[str, dict[str, Any]]]) -> None:
        """Put a request with several seeds into the file. Raises ``PolicyError``."""
        n, room = len(calls), MAX_BYTES - _LINE_BYTES
        failure, n_tries = self._failures.get(calls[0][0], (None, 0))
        if failure and not (failure.may_succeed and n_tries <= self._policy.endpoint.max_retries):
            raise PolicyError(failure.text)
        self._asked.update(key for key, _ in calls)
        made, frames = await self._policy.prepare(request, n)
        body = b"".join(made.fragments)
        if len(body) > room:
            raise PolicyError(f"{len(body):,} bytes, and a batch takes {room:,}: set DARKROOM_POLICY_MAX_PIXELS")
        while len(self._requests) == MAX_REQUESTS or self._file.tell() + len(body) > room:
            await self.submit()  # others add meanwhile
        asked, sizes, name = to_json(calls[0][1]), json.dumps([*map(to_row, frames)]), self._name
        self._requests.append(BatchRequest(f"{name}-{len(self._requests)}", name, asked, n, sizes, n_tries))
        self._file.write(_LINE % (self._requests[-1].id.encode(), body))

    async def _send(self, file: BinaryIO, name: str) -> None:
        try:
            remote = await self._policy.chat.send_batch(file, name)
        except (StatusError, NoAnswer) as error:
            if isinstance(error, StatusError) and error.status < 500:  # else it may be there, and is looked for
                await asyncio.to_thread(self._table.end, name)
            raise self._unavailable("no batch could be sent", error) from None
        await asyncio.to_thread(self._table.name, name, remote)

    async def _collect_remote(self, batch: Batch) -> None:
        state = await self._policy.chat.read_batch(batch.remote, batch.batch, since=batch.made_at)
        if state is None and _is_older(batch, SETTLED_SECONDS):
            await asyncio.to_thread(self._table.end, batch.batch)  # who sent it was killed before
        if state is None or state.status not in _ENDED:
            return
        for file_id in filter(None, (state.output_file_id, state.error_file_id)):
            with TemporaryFile() as file:
                await self._policy.chat.download(file_id, cast(BinaryIO, file))
                file.seek(0)
                await asyncio.to_thread(self._read, [batch], file)
        await asyncio.to_thread(self._table.end, batch.batch)
        if state.status == "failed":
            errors = [str(error.message) for error in (state.errors and state.errors.data) or ()]
            raise self._unavailable(f"batch {state.id} was refused, and is not charged", "; ".join(errors[:3]))

    def _collect_files(self, batches: Sequence[Batch]) -> None:
        """Read what `vllm run-batch` wrote so far, each file once. Deleting a file of requests frees those without an
        answer; where it is not there, only the machine that wrote it knows."""
        if batches:
            self._read(batches, _answer_lines(self._folder))
        for batch in batches:
            requests, n_waiting = self._requests_file(batch), self._table.n_waiting(batch.batch)
            if not n_waiting:
                requests.unlink(missing_ok=True)
            if not n_waiting or (batch.remote == gethostname() and not requests.exists()):
                self._table.end(batch.batch)

    def _read(self, batches: Sequence[Batch], lines: Iterator[bytes]) -> None:
        """Record the answers to ``batches`` among ``lines``: the first to each request."""
        while chunk := list(islice(lines, _LINES_AT_ONCE)):
            answers: dict[str, Any] = {}
            for line in chunk:
                with suppress(ValueError, TypeError, KeyError, RecursionError):  # a line that was cut off
                    answer = json.loads(line)
                    answers.setdefault(answer["custom_id"], answer)
            waiting = by_key((request.batch, request) for request in self._table.waiting([*answers]))
            for batch in (batch for batch in batches if batch.batch in waiting):
                requests, entries, usage = waiting[batch.batch], list[CallEntry](), Usage()
                for request in requests:
                    usage += self._read_one(batch, request, answers[request.id], entries)
                spent = self._policy.budget_pool.pay_within(usage) if usage.calls else None
                self._table.finish(batch.batch, requests, entries, spent)

    def _read_one(self, batch: Batch, request: BatchRequest, answer: Any, entries: list[CallEntry]) -> Usage:
        """Add the calls that an answer makes to ``entries``, or remember the failure. Returns what was paid."""
        price = 1.0 if batch.address == self._folder else self._policy.endpoint.batch_price
        frames = tuple(from_row(SentImage, frame) for frame in json.loads(request.frames))
        calls = request.calls()
        try:
            completions = self._policy.completions(_response(answer), frames, request.n, price)
        except TRY_ERRORS as error:
            failure = failure_of(error)
            text = self._policy.clean(failure.text)[:MAX_CHARACTERS]
            self._failures[calls[0][0]] = replace(failure, text=text), request.tries + 1
            return error.usage if isinstance(error, StatusError) else Usage()
        for (key, asked), each in zip(calls, completions, strict=False):
            call = CachedCall({**to_row(each), "batch": batch.batch}, cost_usd=each.usage.cost_usd)
            entries.append(CallEntry(key, KIND, to_json(asked), call))
        return sum((each.usage for each in completions), Usage())

    async def _claim(self, name: str) -> bool:
        """Keep other processes from sending or reading a batch until the ledger is closed; False where one does."""
        return await self._ledger.claim_soon([name]) == [True]

    def _unavailable(self, what: str, why: object) -> PolicyUnavailable:
        at, reason = self._policy.endpoint, self._policy.clean(str(why))[:MAX_CHARACTERS]
        remedy = "Run this again; with DARKROOM_POLICY_BATCH=off, or its like of the role, no further ones are sent"
        return PolicyUnavailable(f"{at.model} at {at.base_url}: {what}: {reason}. {remedy}")

    def _requests_file(self, batch: Batch) -> Path:
        return Path(self._folder, f"requests-{batch.batch}.jsonl")

    def _where_of(self, batch: Batch) -> str:
        if batch.address != self._folder:
            return f"of a batch at {batch.address}, within 24 hours"
        folder, model = shlex.quote(batch.address), shlex.quote(self._policy.endpoint.model)
        run = f"vllm run-batch --model {model} -i {folder}/all.jsonl -o {folder}/answers-$(date +%s).jsonl"
        return f"of `cat {folder}/requests-*.jsonl > {folder}/all.jsonl && {run}`"


async def ended_batches(batches: Sequence[Batch], policies: Iterable[OpenAIPolicy]) -> set[str]:
    """The names of ``batches`` with answers to be read: each is asked for at the endpoint of one of ``policies``, or
    looked for in its folder. Raises ``StatusError``, ``NoAnswer``."""
    endpoints = {policy.endpoint.base_url: policy.chat for policy in policies}
    lines = (line for at in {each.address for each in batches} - endpoints.keys() for line in _answer_lines(at))
    ended = {each.batch for each in batches} & {name[1].decode() for name in map(_NAME.search, lines) if name}
    for batch in batches:
        if (chat := endpoints.get(batch.address)) is not None:
            state = await chat.read_batch(batch.remote, batch.batch, since=batch.made_at)
            if state.status in _ENDED if state else _is_older(batch, SETTLED_SECONDS):
                ended.add(batch.batch)
    return ended


def _answer_lines(folder: str) -> Iterator[bytes]:
    """The lines that `vllm run-batch` wrote."""
    for path in sorted(Path(folder).glob("answers*.jsonl")):
        with path.open("rb") as lines:
            yield from lines


def _is_older(batch: Batch, seconds: float) -> bool:
    return time.time() - batch.made_at > seconds


def _copy(file: BinaryIO, path: Path) -> None:
    with whole_file(path) as part, part.open("wb") as copy:
        copyfileobj(file, copy)


def _response(answer: Mapping[str, Any]) -> Any:
    """The body of a line of answers. Raises ``StatusError``: a request that expired is one that timed out."""
    response = answer.get("response")
    fields = response if isinstance(response, dict) else {}
    status, error = fields.get("status_code"), answer.get("error")
    if status == 200 and not error:
        return fields.get("body")
    error = error or fields.get("body")
    inner = error.get("error", error) if isinstance(error, dict) else error
    raise StatusError(status if isinstance(status, int) and status != 200 else 408, inner)
