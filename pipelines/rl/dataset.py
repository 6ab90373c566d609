"""The RL dataset: the rows of all shards and of the people's campaign, each once, mixed by quotas.

Near-duplicates across shards and rows of a benchmark go; then every source is filled up to its quota, balanced over
category and difficulty (``pipelines/selection.py``). What is not taken is a reject that says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipelines.digest import digest
from pipelines.isolation import row_fault
from pipelines.records import Reject, RLRow, Sample, to_row
from pipelines.rejects import Reason, RowFault, reject
from pipelines.rl import candidates
from pipelines.rl.rows import annotated_row, public_rows, tables_of
from pipelines.rl.shard import Shard
from pipelines.screening import Screening
from pipelines.selection import Candidate, select
from pipelines.stages import Outcome, Report, code_digest, run_stage
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

KEY = TableKey(("rl_dataset",), "all")
ANNOTATED = "annotated"
"""The name under which people's rows have a quota, whatever their campaign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How much of what. ``quotas``: rows by source, or ``annotated``; a source without one gives all that it has.

    ``n_rows``: rows in all, taken from what the quotas leave; None: all of it.
    """

    quotas: Mapping[str, int] = field(default_factory=dict)
    n_rows: int | None = None
    validation_share: float = 0.05


class _Gathered(NamedTuple):
    """Rows before the selection, and what was taken out on the way to them."""

    rows: dict[str, RLRow]
    rejects: list[Reject]
    n_in: int


def materialize_rows(
    workspace: Workspace, partitions: Sequence[str], annotated: Sequence[Sample], mix: Mix, screening: Screening
) -> Report:
    """The table of all RL rows of those ``partitions`` that have candidates. Raises ``TableMissing``."""
    shards = [Shard(workspace, partition) for partition in partitions]
    there = [shard for shard in shards if workspace.tables.exists(shard.key(candidates.ASSET))]
    inputs = digest(
        [
            [[str(key), workspace.tables.fingerprint(key)] for shard in there for key in tables_of(shard)],
            [sample.sample_id for sample in annotated],
            [dict(mix.quotas), mix.n_rows],
            screening.fingerprint,
            code_digest(),
        ]
    )

    def perform() -> Outcome[RLRow]:
        gathered = _gather(there, annotated)
        _screen(gathered, screening)
        _select(gathered, mix)
        return Outcome(list(gathered.rows.values()), gathered.rejects, gathered.n_in)

    return run_stage(workspace.tables, KEY, RLRow, inputs=inputs, perform=perform)


def source_of(row: RLRow) -> str:
    """The name under which a row has its quota."""
    return ANNOTATED if row.origin == "annotated" else row.sample.source


def _gather(shards: Sequence[Shard], annotated: Sequence[Sample]) -> _Gathered:
    public = [(row, shard.partition) for shard in shards for row in public_rows(shard)]
    gathered = _Gathered({}, [], len(public) + len(annotated))
    for sample in annotated:  # first: of two that are alike, the one that people wrote stays
        try:
            _add(gathered, annotated_row(sample), "the campaign")
        except Exception as fault:  # noqa: BLE001  # sorted by row_fault
            gathered.rejects.append(_taken_out(row_fault(fault), sample, to_row(sample)))
    for row, partition in public:
        _add(gathered, row, partition)
    return gathered


def _add(gathered: _Gathered, row: RLRow, where: str) -> None:
    if row.sample.sample_id in gathered.rows:
        fault = RowFault(Reason.DUPLICATE, f"an earlier shard holds the same question; this one is in {where}")
        gathered.rejects.append(_taken_out(fault, row.sample, to_row(row)))
    else:
        gathered.rows[row.sample.sample_id] = row


def _screen(gathered: _Gathered, screening: Screening) -> None:
    samples = [row.sample for row in gathered.rows.values()]
    for sample_id, fault in screening.screen_samples("rl_dataset", samples).faults.items():
        row = gathered.rows.pop(sample_id)
        gathered.rejects.append(_taken_out(fault, row.sample, to_row(row)))


def _select(gathered: _Gathered, mix: Mix) -> None:
    by_source: dict[str, list[RLRow]] = {}
    for row in gathered.rows.values():
        by_source.setdefault(source_of(row), []).append(row)
    for source, rows in by_source.items():
        if source in mix.quotas:
            _keep(gathered, rows, mix.quotas[source], f"the quota of {source}")
    if mix.n_rows is not None:
        _keep(gathered, list(gathered.rows.values()), mix.n_rows, "the size of the dataset")


def _keep(gathered: _Gathered, rows: Iterable[RLRow], n_rows: int, what: str) -> None:
    """Leaves ``n_rows`` of ``rows``, balanced over category and difficulty."""
    eligible = [Candidate(row.sample.sample_id, row.sample.category, row.difficulty) for row in rows]
    chosen = select(eligible, n_rows)
    for candidate in eligible:
        if candidate.row_id not in chosen:
            row = gathered.rows.pop(candidate.row_id)
            fault = RowFault(Reason.NOT_SELECTED, f"{what} is {n_rows} rows, and others were selected")
            gathered.rejects.append(_taken_out(fault, row.sample, to_row(row)))


def _taken_out(fault: RowFault, sample: Sample, row: dict[str, object]) -> Reject:
    return reject(
        fault.reason,
        fault.evidence,
        stage=KEY.asset[0],
        row=row,
        source=sample.source,
        source_row=sample.source_row,
        sample_id=sample.sample_id,
    )
