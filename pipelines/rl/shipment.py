"""``datasets/rl/prompts``: a parquet file per split, the card, and a marker that says from what they were written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipelines.digest import digest
from pipelines.export import Shipped, write_splits
from pipelines.marker import read_marker, remove_marker, write_marker
from pipelines.records import RLRow
from pipelines.rl.agreement import agreement_in_words
from pipelines.rl.card import RL_CARD_TEMPLATE, write_rl_card
from pipelines.rl.dataset import KEY, Mix
from pipelines.rl.export import write_rows
from pipelines.rl.facts import STAGES, shards_with
from pipelines.rl.suitability import VOTES
from pipelines.shipment import benchmark_names
from pipelines.sources.catalog import source_of
from pipelines.splits import grouped
from pipelines.stages import Report, code_digest
from pipelines.workspace import Workspace


def folder_of(workspace: Workspace) -> Path:
    """Where the dataset lies."""
    return workspace.dataset("rl", "prompts")


def ship_rows(workspace: Workspace, partitions: Sequence[str], report: Report, mix: Mix) -> Shipped:
    """Writes the rows of the table, unless they lie there whole, written from the same. No image is in two splits."""
    folder = folder_of(workspace)
    agreement = _agreement(workspace, partitions)
    inputs = _inputs(workspace, partitions, mix, agreement)
    if (found := read_marker(folder, inputs)) is not None:
        return found
    remove_marker(folder)
    rows = workspace.tables.read(KEY, RLRow)
    splits = grouped((row.sample for row in rows), validation_share=mix.validation_share)

    def write(part: Sequence[RLRow], split: str) -> Shipped:
        return write_rows(folder, part, store=workspace.images, split=split)

    shipped, n_by_split = write_splits(folder, rows, write, split_of=lambda row: splits.of(row.sample.sample_id))
    card = write_rl_card(
        workspace,
        partitions,
        rows,
        report,
        n_by_split=n_by_split,
        benchmarks=benchmark_names(workspace),
        agreement=agreement,
    )
    write_marker(shipped, inputs, card)
    return shipped


def _agreement(workspace: Workspace, partitions: Sequence[str]) -> str:
    voting = shards_with(workspace, partitions, VOTES)
    return agreement_in_words(voting, sorted({source_of(shard.partition) for shard in voting}))


def _inputs(workspace: Workspace, partitions: Sequence[str], mix: Mix, agreement: str) -> str:
    """All that the files and the card are made from."""
    facts = [
        [str(shard.key(asset)), workspace.tables.facts(shard.key(asset))]
        for asset in STAGES
        for shard in shards_with(workspace, partitions, asset)
    ]
    rest = [mix.validation_share, agreement, code_digest(), RL_CARD_TEMPLATE]
    return digest([workspace.tables.fingerprint(KEY), workspace.tables.facts(KEY), facts, *rest])
