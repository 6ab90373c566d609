"""A policy on the ledger: a completion that was paid for once is never paid for again."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from darkroom.pipelines.models.messages import as_json
from darkroom.pipelines.models.policies.batch_queue import BatchQueue
from darkroom.pipelines.models.policies.policy import (
    Completion,
    CompletionRequest,
    Policy,
    PolicyIdentity,
    Sampler,
    one_by_one,
    reseeded,
)
from darkroom.pipelines.records import Usage, from_row, to_row
from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.tracing import span


class RecordedPolicy(AbstractAsyncContextManager["RecordedPolicy"]):
    """Policy with a memory. ``n_written`` completions were made in this run; ``spent`` is their cost. With a ``queue``
    requests that open a conversation may go into batches: they raise ``AnswersPending``."""

    def __init__(self, policy: Policy, ledger: Ledger, queue: BatchQueue | None = None) -> None:
        self._policy, self._ledger, self._queue = policy, ledger, queue
        self._sampler = policy if isinstance(policy, Sampler) else None
        self.n_written = 0
        self.spent = Usage()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def identity(self) -> PolicyIdentity:
        return self._policy.identity

    @property
    def concurrency(self) -> int:
        return self._policy.concurrency

    async def check(self) -> None:
        """Checks the policy, and records what its batches have answered. Raises ``PolicyUnavailable``."""
        await self._policy.check()
        if self._queue is not None:
            await self._queue.collect()

    async def submit(self) -> str:
        """Sends the batch. Returns where answers are waited for; empty where none is."""
        return "" if self._queue is None else await self._queue.submit()

    async def write(self, request: CompletionRequest) -> Completion:
        """The recorded completion, or a new one that is durable before it is returned."""
        if self._queue is not None and self._queue.takes(request):
            return (await self.sample(request, 1))[0]

        async def perform() -> CachedCall:
            return (await self._perform(request, 1))[0]

        key = {**self._key(request), "seed": request.seed}
        return _completion(await self._ledger.get_or_run("policy", key, perform))

    async def has_written(self, request: CompletionRequest) -> bool:
        return await self._ledger.has("policy", {**self._key(request), "seed": request.seed})

    gives_several = True
    """Where the inner policy cannot, each answer is a request of its own."""

    async def sample(self, request: CompletionRequest, n: int) -> tuple[Completion, ...]:
        """All ``n`` completions with the seeds from ``request.seed`` on; only those not recorded are requested."""
        inner, key = self._sampler, self._key(request)
        if self._queue is not None and self._queue.takes(request):
            return tuple(map(_completion, await self._queue.ask(request, {**key, "seed": request.seed}, n)))
        if inner is None or not inner.gives_several:
            return await one_by_one(self, request, n)

        async def perform(places: Sequence[int]) -> Mapping[int, CachedCall]:
            first = places[0]
            n_in_a_row = next((n for n, place in enumerate(places) if place != first + n), len(places))
            n_at_once = n_in_a_row if inner.gives_several else 1  # an earlier request may have shown that it does not
            return dict(enumerate(await self._perform(reseeded(request, first), n_at_once), start=first))

        seeded = [{**key, "seed": request.seed + place} for place in range(n)]
        return tuple(map(_completion, await self._ledger.all_of("policy", seeded, perform)))

    async def _perform(self, request: CompletionRequest, n: int) -> list[CachedCall]:
        start, model = time.perf_counter(), self.identity.model
        # the names of OpenTelemetry's conventions for generative models
        with span(f"chat {model}", {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}) as note:
            if n > 1 and self._sampler is not None:
                completions = await self._sampler.sample(request, n)
            else:
                completions = (await self._policy.write(request),)
            usage = sum((completion.usage for completion in completions), Usage())
            note({"gen_ai.usage.input_tokens": usage.prompt_tokens, "darkroom.cost_usd": usage.cost_usd})
            note({"gen_ai.usage.output_tokens": usage.completion_tokens, "gen_ai.request.choice.count": n})
        self.n_written += len(completions)
        self.spent += usage
        seconds = (time.perf_counter() - start) / len(completions)  # one request's answers share its time
        return [CachedCall(to_row(each), seconds=seconds, cost_usd=each.usage.cost_usd) for each in completions]

    def _key(self, request: CompletionRequest) -> dict[str, Any]:
        """Everything that determines the completion, except the seed."""
        return {
            "identity": self.identity.as_json(),
            "messages": as_json(request.messages),
            "stop": list(request.stop),
            # the oracle reads the truth, which the conversation need not show
            "sample": request.task.sample.sample_id if self.identity.policy == "oracle" else "",
            **({} if request.schema is None else {"schema": dict(request.schema)}),
        }

    async def close(self) -> None:
        if self._queue is not None:
            self._queue.close()
        await self._policy.close()


def _completion(act: CachedCall) -> Completion:
    return from_row(Completion, {name: value for name, value in act.result.items() if name != "batch"})
