"""The yield of a family: rows after each stage, rejects by reason, cost per accepted row; what a quota needs of it."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
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
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Funnel:
    """The stages in order, from the samples on."""

    steps: tuple[FunnelStep, ...]

    @property
    def usage(self) -> Usage:
        """The cost of all stages."""
        return sum((step.usage for step in self.steps), Usage())

    @property
    def n_accepted(self) -> int:
        """Rows that passed every check."""
        return self.steps[-1].n_out if self.steps else 0

    @property
    def n_not_applicable(self) -> int:
        """Number of samples that are not for the family, which are no loss."""
        return sum(step.n_not_applicable for step in self.steps)

    @property
    def n_tried(self) -> int:
        """Samples of which a draft was asked for, or that are not for the family."""
        return self.steps[0].n_out - sum(step.reasons.get(Reason.NOT_DRAWN, 0) for step in self.steps)

    @property
    def usd_per_row(self) -> float:
        """The whole cost, rejected rows included, per accepted row."""
        return self.usage.cost_usd / self.n_accepted if self.n_accepted else 0.0

    @property
    def tokens_per_row(self) -> float:
        """The same in tokens, of prompts and completions."""
        return self.usage.n_tokens / self.n_accepted if self.n_accepted else 0.0


def funnel_step(name: str, facts: Sequence[Mapping[str, Any]]) -> FunnelStep:
    """A stage's facts of all partitions, added up."""
    reasons = sum((Counter(fact["reasons"]) for fact in facts), Counter[str]())
    n_not_applicable = reasons.pop(Reason.NOT_APPLICABLE, 0)
    usage = sum((from_row(Usage, fact["usage"]) for fact in facts), Usage())
    n_out = sum(fact["n_out"] for fact in facts)
    return FunnelStep(name, n_out, dict(sorted(reasons.items())), n_not_applicable, usage)


def funnel_of(tables: Tables, family: str, partitions: Sequence[str]) -> Funnel:
    """Over those partitions whose trajectories are materialised."""
    keys = tables.existing(TableKey((family, STAGES[-1]), partition) for partition in partitions)
    there = [key.partition for key in keys]
    first = FunnelStep("samples", sum(tables.n_rows(TableKey(SAMPLES, partition)) for partition in there), {})
    facts = {stage: [tables.facts(TableKey((family, stage), partition)) for partition in there] for stage in STAGES}
    return Funnel((first, *starmap(funnel_step, facts.items())))


@dataclass(frozen=True, slots=True)
class Forecast:
    """Rows and cost of ``n_rows`` further samples of a source in a family, if they are like the ``n_measured`` before.
    ``accepted``: with the 99 % interval of the prediction (beta-binomial, Jeffreys' prior) below and above."""

    n_measured: int
    n_rows: int
    accepted: float
    least: int
    most: int
    written: Usage
    """By the policy: drafts and runs."""
    judged: Usage
    """By judges, and by the policy without tools or image."""

    @classmethod
    def of(cls, funnel: Funnel, n_rows: int) -> "Forecast":
        from scipy.stats import betabinom  # takes a second

        n, k = funnel.n_tried, funnel.n_accepted
        least, most = betabinom.interval(0.99, n_rows, k + 0.5, n - k + 0.5)
        used, share = {step.name: step.usage for step in funnel.steps}, n_rows / n
        written, judged = (used["drafts"] + used["runs"]).times(share), used["verdicts"].times(share)
        return cls(n, n_rows, k * share, int(least), int(most), written, judged)


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


def next_limits(
    n_wanted: int, shards: Sequence[str], so_far: Mapping[str, Yield], *, n_each: int | None = None
) -> dict[str, int]:
    """Number of samples to draft in all, by shard, for the rows that are missing; empty when none is or all is used up.
    The missing rows are spread evenly over the first shards that are not exhausted: as many as give each of them
    ``n_each`` rows, or one. The yield so far says how many samples a row takes, and one before anything is drafted."""
    n_drafted = sum(each.n_drafted for each in so_far.values())
    n_accepted = sum(each.n_accepted for each in so_far.values())
    missing = n_wanted - n_accepted
    unused = [shard for shard in shards if shard not in so_far or not so_far[shard].is_exhausted]
    if missing <= 0 or not unused:
        return {}
    chosen = unused[: math.ceil(missing / n_each) if n_each else 1]
    samples_per_row = n_drafted / max(n_accepted, 1) if n_drafted else 1.0
    n_rows, n_more = divmod(missing, len(chosen))
    return {
        shard: (so_far[shard].n_drafted if shard in so_far else 0)
        + math.ceil((n_rows + (n < n_more)) * samples_per_row)
        for n, shard in enumerate(chosen)
    }
