"""RL rows: what was measured of every sample that no stage took out, joined. A column is empty where its stage does not
ask about the sample (a video, a problem in words). Rows that people wrote (``annotation/``) come without pass rate."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.records import Difficulty, PassRate, RLCandidate, RLRow, Sample, SuitabilityLabel, ToolNecessity
from darkroom.pipelines.rl import candidates, labels, necessity, pass_rates, suitability
from darkroom.pipelines.rl.facts import STAGES
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.verification.grading import grader_of, require_discrimination

R = TypeVar("R")
FILTERS = (labels.ASSET, pass_rates.ASSET, suitability.LABELS)
"""Stages whose rejects are no RL rows. Necessity is a prior only: where it could not be had, the row stays."""
_HARD, _MEDIUM = 0.375, 0.625


def difficulty_of(rate: PassRate | None) -> Difficulty:
    """By the share of right answers: up to 3 of 8 hard, up to 5 medium, more easy; none at all is a kind of its own."""
    if rate is None:
        return "unknown"
    if rate.never_solved:
        return "unsolved"
    if (share := rate.votes.share) <= _HARD:
        return "hard"
    return "medium" if share <= _MEDIUM else "easy"


def public_rows(shard: Shard) -> Iterator[RLRow]:
    """The rows of one shard of a source. Raises ``TableMissing`` for a stage that was not materialised."""
    out = {reject.sample_id for asset in FILTERS for reject in shard.workspace.tables.read_rejects(shard.key(asset))}
    rates = _by_sample(shard, pass_rates.ASSET, PassRate)
    priors = _by_sample(shard, necessity.ASSET, ToolNecessity)
    suitable = _by_sample(shard, suitability.LABELS, SuitabilityLabel)
    for sample, row in shard.joined(candidates.ASSET, RLCandidate):
        if (key := sample.sample_id) not in out:
            rate, prior, label = rates.get(key), priors.get(key), suitable.get(key)
            yield RLRow(sample, row.grader, "public", difficulty_of(rate), rate, prior, label)


def annotated_row(sample: Sample) -> RLRow:
    """The row of a question that people wrote. Raises ``RowError`` (grader_cannot_tell)."""
    grader = grader_of(sample)
    require_discrimination(sample, grader)
    return RLRow(sample, grader, origin="annotated", difficulty="unknown")


def tables_of(shard: Shard) -> Sequence[TableKey]:
    return [shard.samples_key, *map(shard.key, STAGES)]


def _by_sample(shard: Shard, asset: str, kind: type[R]) -> dict[str, R]:
    rows: list[Any] = shard.workspace.tables.read(shard.key(asset), kind)
    return {row.sample_id: row for row in rows}
