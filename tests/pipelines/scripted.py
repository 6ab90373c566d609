"""A policy that answers what it is told to: a fake only where money would be spent."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.models.policies import Completion, CompletionRequest, PolicyIdentity
from pipelines.records import Usage


class Scripted:
    """Every turn is kept, and costs ``cost_usd``."""

    concurrency = 4

    def __init__(
        self, answer: Callable[[CompletionRequest], str], *, name: str = "scripted", cost_usd: float = 0.5
    ) -> None:
        self.identity = PolicyIdentity(name, name)
        self._answer, self._cost_usd = answer, cost_usd
        self.turns: list[CompletionRequest] = []

    async def check(self) -> None:
        pass

    async def write(self, turn: CompletionRequest) -> Completion:
        self.turns.append(turn)
        return Completion(self._answer(turn), usage=Usage(calls=1, cost_usd=self._cost_usd))

    async def close(self) -> None:
        pass
