"""The yield funnel of a family: rows after each stage, what took the others out, and what an accepted row cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.engine import SAMPLES, STAGES
from pipelines.records import Usage, from_row
from pipelines.tables import TableKey, Tables


@dataclass(frozen=True, slots=True)
class Step:
    """One stage over all partitions. ``reasons`` counts what it took out."""

    name: str
    n_out: int
    reasons: dict[str, int]


@dataclass(frozen=True, slots=True)
class Funnel:
    """The stages in order, from the samples on, and what they cost in all."""

    steps: tuple[Step, ...]
    usage: Usage

    @property
    def n_accepted(self) -> int:
        """Rows that passed every check."""
        return self.steps[-1].n_out if self.steps else 0

    @property
    def usd_per_row(self) -> float:
        """All that was paid, rows that were taken out included, per accepted row."""
        return self.usage.cost_usd / self.n_accepted if self.n_accepted else 0.0

    @property
    def tokens_per_row(self) -> float:
        """The same in tokens, of prompts and completions."""
        n_tokens = self.usage.prompt_tokens + self.usage.completion_tokens
        return n_tokens / self.n_accepted if self.n_accepted else 0.0


def funnel_of(tables: Tables, family: str, partitions: Sequence[str]) -> Funnel:
    """Over those partitions whose trajectories are materialised."""
    there = [partition for partition in partitions if tables.exists(TableKey((family, STAGES[-1]), partition))]
    n_samples = sum(tables.n_rows(TableKey(SAMPLES, partition)) for partition in there)
    steps, usage = [Step("samples", n_samples, {})], Usage()
    for stage in STAGES:
        facts = [tables.facts(TableKey((family, stage), partition)) for partition in there]
        reasons = sum((Counter(fact["reasons"]) for fact in facts), Counter[str]())
        steps.append(Step(stage, sum(fact["n_out"] for fact in facts), dict(sorted(reasons.items()))))
        usage = sum((from_row(Usage, fact["usage"]) for fact in facts), usage)
    return Funnel(tuple(steps), usage)
