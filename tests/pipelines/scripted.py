"""A policy that answers what it is told to, and a family after all stages, by such a policy or by the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.models.policies import (
    Completion,
    CompletionRequest,
    OraclePolicy,
    PolicyIdentity,
    oracle_policy,
)
from darkroom.pipelines.records import Reject, Usage
from darkroom.pipelines.storage.stage_runs import StageReport


class Scripted:
    """A fake only where money would be spent: every turn is kept, and a text costs ``cost_usd``."""

    concurrency = 4

    def __init__(
        self, answer: Callable[[CompletionRequest], str | Completion], *, name: str = "scripted", cost_usd: float = 0.5
    ) -> None:
        self.identity = PolicyIdentity(name, name)
        self._answer, self._cost_usd = answer, cost_usd
        self.turns: list[CompletionRequest] = []

    async def check(self) -> None:
        pass

    async def write(self, turn: CompletionRequest) -> Completion:
        self.turns.append(turn)
        answer = self._answer(turn)
        if isinstance(answer, Completion):
            return answer
        return Completion(answer, usage=Usage(calls=1, cost_usd=self._cost_usd))

    async def close(self) -> None:
        pass


def turn_by_turn(*texts: str) -> Scripted:
    """One after the other; the last one for ever."""
    return Scripted(lambda turn: texts[min(len(turn.rounds), len(texts) - 1)])


def oracle(recipe: Recipe) -> OraclePolicy:
    return oracle_policy(recipe.family, revision=recipe.digest)


def run_all(family: Family, policy: Any = None) -> dict[str, StageReport]:
    """All stages of a family, with the oracle unless another policy is given."""
    writer = policy or oracle(family.recipe)
    return {
        "drafts": family.draft(writer),
        "runs": family.run(writer),
        "verdicts": family.check(),
        "trajectories": family.keep(),
        "rejects": family.collect_rejects(),
    }


def taken_out(family: Family) -> list[Reject]:
    """What the family's stages took out: its rejects, then the rows that are not applicable to it."""
    tables, key = family.workspace.tables, family.key("rejects")
    return [*tables.read(key, Reject), *tables.read_rejects(key)]
