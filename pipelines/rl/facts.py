"""Totals of the RL stages over all shards, for the card and the pages."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom.pipelines.generation.funnel import FunnelStep, funnel_step
from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.records import PassRate, SuitabilityVotes, Usage, Votes, from_row
from darkroom.pipelines.rl import candidates, labels, necessity, pass_rates, suitability
from darkroom.pipelines.storage.workspace import Workspace

STAGES = (candidates.ASSET, labels.ASSET, pass_rates.ASSET, necessity.ASSET, suitability.VOTES, suitability.LABELS)
"""In the order in which they are materialised."""


@dataclass(frozen=True, slots=True)
class StageFacts:
    """One stage over all shards. ``models``: all who were asked; ``settings`` that differ by shard are all named."""

    step: FunnelStep
    n_in: int
    usage: Usage
    models: tuple[str, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Polled:
    """Votes of one stage, added up. ``by_yes``: rows by the number of ballots that say yes."""

    n_rows: int
    n_ballots: int
    n_invalid: int
    n_saved: int
    n_tied: int
    mean_agreement: float
    judges: frozenset[str]
    """Who voted."""
    by_yes: Mapping[int, int]
    n_most: int
    """The most ballots that a row was to have."""


def shards_with(workspace: Workspace, partitions: Sequence[str], asset: str) -> list[Shard]:
    """Shards that have the stage's table."""
    keys = [Shard(workspace, partition).key(asset) for partition in partitions]
    return [Shard(workspace, key.partition) for key in workspace.tables.existing(keys)]


def stage_facts(workspace: Workspace, partitions: Sequence[str]) -> list[StageFacts]:
    return [_stage(shards, asset) for asset in STAGES if (shards := shards_with(workspace, partitions, asset))]


def all_votes(workspace: Workspace, partitions: Sequence[str], asset: str) -> Iterator[Votes]:
    """The votes of one stage, those of rows that it took out among them."""
    kind: Any = {pass_rates.ASSET: PassRate, suitability.VOTES: SuitabilityVotes}[asset]
    for shard in shards_with(workspace, partitions, asset):
        tables, key = shard.workspace.tables, shard.key(asset)
        yield from (row.votes for row in tables.stream(key, kind))
        rejected = (json.loads(reject.row) for reject in tables.stream_rejects(key))
        yield from (from_row(Votes, row["votes"]) for row in rejected if isinstance(row, dict) and "votes" in row)


def polled(votes: Iterable[Votes]) -> Polled:
    sums = Counter(n_rows=0, n_ballots=0, n_invalid=0, n_saved=0, n_tied=0)
    by_yes, judges = Counter[int](), set[str]()
    agreement, n_most = 0.0, 0
    for row in votes:
        is_tied = row.majority == "tie"
        sums.update(n_rows=1, n_ballots=row.n, n_invalid=row.n_invalid, n_saved=row.n_saved, n_tied=is_tied)
        by_yes[row.n_yes] += 1
        judges.add(row.judge)
        agreement += row.agreement
        n_most = max(n_most, row.n_wanted)
    mean = agreement / sums["n_rows"] if sums["n_rows"] else 0.0
    counts = dict(sorted(by_yes.items()))
    return Polled(**sums, mean_agreement=mean, judges=frozenset(judges), by_yes=counts, n_most=n_most)


def grader_counts(workspace: Workspace, partitions: Sequence[str]) -> Counter[str]:
    keys = [shard.key(candidates.ASSET) for shard in shards_with(workspace, partitions, candidates.ASSET)]
    return Counter(grader["kind"] for key in keys for (grader,) in workspace.tables.columns(key, "grader"))


def _stage(shards: Sequence[Shard], asset: str) -> StageFacts:
    facts = [shard.workspace.tables.facts(shard.key(asset)) for shard in shards]
    notes = [fact.get("notes", {}) for fact in facts]
    settings = [note.get("settings", {}) for note in notes]
    return StageFacts(
        step=funnel_step(asset, facts),
        n_in=sum(fact["n_in"] for fact in facts),
        usage=sum((from_row(Usage, fact["usage"]) for fact in facts), Usage()),
        models=tuple(dict.fromkeys(model for note in notes for model in note.get("models", {}).values())),
        settings={name: _all_of([each.get(name) for each in settings]) for each in settings for name in each},
    )


def _all_of(values: Sequence[Any]) -> Any:
    different = list(dict.fromkeys(map(str, values)))
    return values[0] if len(different) == 1 else " or ".join(different)
