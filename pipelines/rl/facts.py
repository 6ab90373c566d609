"""What the RL stages came to, over all shards: for the card and the pages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.funnel import Step
from pipelines.records import (
    PassRate,
    Reject,
    RLCandidate,
    SuitabilityVotes,
    Usage,
    Votes,
    from_row,
)
from pipelines.rl import candidates, labels, necessity, pass_rates, suitability
from pipelines.rl.shard import Shard
from pipelines.workspace import Workspace

STAGES = (
    candidates.ASSET,
    labels.ASSET,
    pass_rates.ASSET,
    necessity.ASSET,
    suitability.VOTES,
    suitability.LABELS,
)
"""In the order in which they are materialised."""


@dataclass(frozen=True, slots=True)
class StageFacts:
    """One stage over all shards. ``models``: who was asked, by role; ``settings`` as they were set."""

    step: Step
    n_in: int
    usage: Usage
    models: Mapping[str, str]
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
    by_yes: Mapping[int, int]


def shards_with(workspace: Workspace, partitions: Sequence[str], asset: str) -> list[Shard]:
    """Those that have the stage's table."""
    shards = [Shard(workspace, partition) for partition in partitions]
    return [shard for shard in shards if workspace.tables.exists(shard.key(asset))]


def stage_facts(workspace: Workspace, partitions: Sequence[str]) -> list[StageFacts]:
    """Every stage that was materialised."""
    return [_stage(shards, asset) for asset in STAGES if (shards := shards_with(workspace, partitions, asset))]


def all_votes(workspace: Workspace, partitions: Sequence[str], asset: str) -> list[Votes]:
    """The votes of one stage, those of rows that it took out among them."""
    kinds = {pass_rates.ASSET: PassRate, suitability.VOTES: SuitabilityVotes}
    kind: Any = kinds[asset]
    found: list[Votes] = []
    for shard in shards_with(workspace, partitions, asset):
        tables, key = shard.workspace.tables, shard.key(asset)
        found += [row.votes for row in tables.read(key, kind)]
        found += list(_votes_of(tables.read_rejects(key)))
    return found


def polled(votes: Sequence[Votes]) -> Polled:
    """The sums."""
    return Polled(
        n_rows=len(votes),
        n_ballots=sum(one.n for one in votes),
        n_invalid=sum(one.n_invalid for one in votes),
        n_saved=sum(one.n_saved for one in votes),
        n_tied=sum(one.majority == "tie" for one in votes),
        mean_agreement=sum(one.agreement for one in votes) / len(votes) if votes else 0.0,
        by_yes=dict(sorted(Counter(one.n_yes for one in votes).items())),
    )


def grader_counts(workspace: Workspace, partitions: Sequence[str]) -> Counter[str]:
    """Candidates by the kind of their grader."""
    shards = shards_with(workspace, partitions, candidates.ASSET)
    rows = (row for shard in shards for row in workspace.tables.read(shard.key(candidates.ASSET), RLCandidate))
    return Counter(row.grader.kind for row in rows)


def _votes_of(rejects: Iterable[Reject]) -> Iterable[Votes]:
    for one in rejects:
        row = json.loads(one.row)
        if isinstance(row, dict) and "votes" in row:
            yield from_row(Votes, row["votes"])


def _stage(shards: Sequence[Shard], asset: str) -> StageFacts:
    facts = [shard.workspace.tables.facts(shard.key(asset)) for shard in shards]
    reasons = sum((Counter(fact["reasons"]) for fact in facts), Counter[str]())
    notes = facts[-1].get("notes", {})
    return StageFacts(
        step=Step(asset, sum(fact["n_out"] for fact in facts), dict(sorted(reasons.items()))),
        n_in=sum(fact["n_in"] for fact in facts),
        usage=sum((from_row(Usage, fact["usage"]) for fact in facts), Usage()),
        models=notes.get("models", {}),
        settings=notes.get("settings", {}),
    )
