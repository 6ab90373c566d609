"""The yield of a family: rows after each stage, rejects by reason, cost per accepted row; what a quota needs of it."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import Usage, from_row
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.storage.tables import TableKey, Tables


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """One stage over all partitions. ``reasons`` counts its rejects, without the rows that do not apply."""

    name: str
    n_out: int
    reasons: dict[str, int]
    n_not_applicable: int = 0


@dataclass(frozen=True, slots=True)
class Funnel:
    """The stages in order, from the samples on, and what they cost in all."""

    steps: tuple[FunnelStep, ...]
    usage: Usage

    @property
    def n_accepted(self) -> int:
        """Rows that passed every check."""
        return self.steps[-1].n_out if self.steps else 0

    @property
    def n_not_applicable(self) -> int:
        """Number of samples that are not for the family, which are no loss."""
        return sum(step.n_not_applicable for step in self.steps)

    @property
    def usd_per_row(self) -> float:
        """The whole cost, rejected rows included, per accepted row."""
        return self.usage.cost_usd / self.n_accepted if self.n_accepted else 0.0

    @property
    def tokens_per_row(self) -> float:
        """The same in tokens, of prompts and completions."""
        n_tokens = self.usage.prompt_tokens + self.usage.completion_tokens
        return n_tokens / self.n_accepted if self.n_accepted else 0.0


def funnel_step(name: str, facts: Sequence[Mapping[str, Any]]) -> FunnelStep:
    """A stage's facts of all partitions, added up."""
    reasons = sum((Counter(fact["reasons"]) for fact in facts), Counter[str]())
    n_not_applicable = reasons.pop(Reason.NOT_APPLICABLE, 0)
    return FunnelStep(name, sum(fact["n_out"] for fact in facts), dict(sorted(reasons.items())), n_not_applicable)


def funnel_of(tables: Tables, family: str, partitions: Sequence[str]) -> Funnel:
    """Over those partitions whose trajectories are materialised."""
    keys = tables.existing(TableKey((family, STAGES[-1]), partition) for partition in partitions)
    there = [key.partition for key in keys]
    n_samples = sum(tables.n_rows(TableKey(SAMPLES, partition)) for partition in there)
    steps = [FunnelStep("samples", n_samples, {})]
    usage = Usage()
    for stage in STAGES:
        facts = [tables.facts(TableKey((family, stage), partition)) for partition in there]
        steps.append(funnel_step(stage, facts))
        usage = sum((from_row(Usage, fact["usage"]) for fact in facts), usage)
    return Funnel(tuple(steps), usage)


@dataclass(frozen=True, slots=True)
class Yield:
    """Drafting of a family's partition: ``n_most`` samples were to be drafted, ``n_drafted`` could be."""

    n_most: int
    n_drafted: int
    n_accepted: int

    @property
    def is_exhausted(self) -> bool:
        """True if there is no further sample to draft."""
        return self.n_drafted < self.n_most


def next_limit(n_wanted: int, so_far: Yield | None) -> int | None:
    """Number of the partition's samples to draft in all; None when it is filled or exhausted."""
    if so_far is None:
        return n_wanted
    missing = n_wanted - so_far.n_accepted
    if missing <= 0 or so_far.is_exhausted:
        return None
    accepted_share = max(so_far.n_accepted, 1) / max(so_far.n_drafted, 1)
    return so_far.n_drafted + math.ceil(missing / accepted_share)
