"""A policy whose turns go through the ledger: a turn that was written once is never paid for again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from pipelines.ledger import Act, Ledger
from pipelines.messages import as_json
from pipelines.policies.base import Completion, Frame, Identity, Policy, Turn
from pipelines.policies.samples import Sampler, reseeded
from pipelines.records import Usage, from_row, to_row


class RecordedPolicy:
    """``policy`` with a memory. ``n_written`` turns had to be written in this run; ``spent`` is their cost."""

    def __init__(self, policy: Policy, ledger: Ledger) -> None:
        self._policy, self._ledger = policy, ledger
        self._sampler = policy if isinstance(policy, Sampler) else None
        self.n_written = 0
        self.spent = Usage()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def identity(self) -> Identity:
        """The inner policy's."""
        return self._policy.identity

    @property
    def concurrency(self) -> int:
        """The inner policy's."""
        return self._policy.concurrency

    async def check(self) -> None:
        """Whether the inner policy can be reached."""
        await self._policy.check()

    async def write(self, turn: Turn) -> Completion:
        """The turn of record: recalled, or written and durable before it is returned."""

        async def perform() -> Act:
            (act,) = await self._performed(turn, 1)
            return act

        request = {**self._request(turn), "seed": turn.seed}
        return _completion(await self._ledger.once("policy", request, perform))

    @property
    def gives_several(self) -> bool:
        """Always: what the inner policy cannot give at once is asked for one by one."""
        return True

    async def sample(self, turn: Turn, n: int) -> tuple[Completion, ...]:
        """All ``n`` turns of record with the seeds from ``turn.seed`` on; those that are missing are asked for."""
        inner, request, seeds = self._sampler, self._request(turn), range(turn.seed, turn.seed + n)

        async def perform_one(place: int) -> Act:
            (act,) = await self._performed(reseeded(turn, place), 1)
            return act

        if inner is None or not inner.gives_several:
            return tuple(map(_completion, await self._ledger.each_of("policy", request, seeds, perform_one)))

        async def perform(places: Sequence[int]) -> Mapping[int, Act]:
            if not inner.gives_several:  # it turned out only now
                return await self._each(turn, places)
            first = places[0]
            n_in_a_row = next((n for n, place in enumerate(places) if place != first + n), len(places))
            return dict(enumerate(await self._performed(reseeded(turn, first), n_in_a_row), start=first))

        return tuple(map(_completion, await self._ledger.all_of("policy", request, seeds, perform)))

    async def _each(self, turn: Turn, places: Sequence[int]) -> Mapping[int, Act]:
        """A request each; those that succeed. Raises what the first raised when none does."""
        asked = (self._performed(reseeded(turn, place), 1) for place in places)
        said = await asyncio.gather(*asked, return_exceptions=True)
        made = {place: acts[0] for place, acts in zip(places, said, strict=True) if isinstance(acts, list)}
        fault = next((acts for acts in said if isinstance(acts, BaseException)), None)
        if fault is not None and not made:
            raise fault
        return made

    async def _performed(self, turn: Turn, n: int) -> list[Act]:
        """One request's answers."""
        started = time.perf_counter()
        if n > 1 and self._sampler is not None:
            said = await self._sampler.sample(turn, n)
        else:
            said = (await self._policy.write(turn),)
        self.n_written += len(said)
        self.spent = sum((completion.usage for completion in said), self.spent)
        seconds = (time.perf_counter() - started) / len(said)  # they were had together
        return [Act(to_row(completion), seconds=seconds, cost_usd=completion.usage.cost_usd) for completion in said]

    def _request(self, turn: Turn) -> dict[str, Any]:
        """All that determines what is written, but the seed."""
        return {
            "identity": self.identity.as_json(),
            "messages": as_json(turn.messages),
            "stop": list(turn.stop),
            # the oracle reads the truth, which the conversation need not show
            "sample": turn.task.sample.sample_id if self.identity.policy == "oracle" else "",
            **({} if turn.schema is None else {"schema": dict(turn.schema)}),
        }

    async def close(self) -> None:
        """Closes the inner policy."""
        await self._policy.close()


def _completion(act: Act) -> Completion:
    result = act.result
    frames = tuple(from_row(Frame, frame) for frame in result.get("frames", ()))  # older acts have none
    return Completion(result["text"], result["finished"], from_row(Usage, result["usage"]), frames)
