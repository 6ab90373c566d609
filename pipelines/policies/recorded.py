"""A policy whose turns go through the ledger: a turn that was written once is never paid for again."""

from __future__ import annotations

import time
from typing import Self

from pipelines.ledger import Act, Ledger
from pipelines.messages import as_json
from pipelines.policies.base import Completion, Frame, Identity, Policy, Turn
from pipelines.records import Usage, from_row, to_row


class RecordedPolicy:
    """``policy`` with a memory. ``n_written`` counts the turns that had to be written in this run."""

    def __init__(self, policy: Policy, ledger: Ledger) -> None:
        self._policy, self._ledger = policy, ledger
        self.n_written = 0

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
            started = time.perf_counter()
            completion = await self._policy.write(turn)
            self.n_written += 1
            seconds = time.perf_counter() - started
            return Act(to_row(completion), seconds=seconds, cost_usd=completion.usage.cost_usd)

        request = {
            "identity": self.identity.as_json(),
            "messages": as_json(turn.messages),
            "stop": list(turn.stop),
            "seed": turn.seed,
            # the oracle reads the truth, which the conversation need not show
            "sample": turn.task.sample.sample_id if self.identity.policy == "oracle" else "",
            **({} if turn.schema is None else {"schema": dict(turn.schema)}),
        }
        act = await self._ledger.once("policy", request, perform)
        return _completion(act)

    async def close(self) -> None:
        """Closes the inner policy."""
        await self._policy.close()


def _completion(act: Act) -> Completion:
    result = act.result
    frames = tuple(from_row(Frame, frame) for frame in result.get("frames", ()))  # older acts have none
    return Completion(result["text"], result["finished"], from_row(Usage, result["usage"]), frames)
