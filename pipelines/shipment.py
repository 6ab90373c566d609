"""One family's folder: a parquet file per split, the card, and a marker that says from what they were written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pipelines.card import write_card
from pipelines.decontamination import read_benchmarks
from pipelines.engine import SAMPLES
from pipelines.export import Shipped, write_dataset, write_splits
from pipelines.funnel import funnel_of
from pipelines.judging import judging_of
from pipelines.marker import read_marker, remove_marker, write_marker
from pipelines.recipes.base import Recipe
from pipelines.records import Sample, Trajectory
from pipelines.replay import replay
from pipelines.reviews import acceptance, read_reviews
from pipelines.splits import Splits
from pipelines.stages import Report
from pipelines.tables import TableKey
from pipelines.workspace import Workspace


def ship(
    workspace: Workspace,
    recipe: Recipe,
    keys: Sequence[TableKey],
    report: Report,
    *,
    inputs: str,
    splits: Splits,
    n_replayed: int | None,
) -> Shipped:
    """Writes the rows of ``report``'s table, unless they lie there whole, written from the same ``inputs``.

    The first ``n_replayed`` rows of a split (None: all) are executed once more from what was written.
    """
    folder = workspace.dataset("sft", recipe.family)
    if (found := read_marker(folder, inputs)) is not None:
        return found
    remove_marker(folder)
    samples = samples_of(workspace, keys)
    trajectories = workspace.tables.read(report.key, Trajectory)
    shipped, n_by_split = _write(workspace, folder, trajectories, samples, splits)
    card = write_card(
        recipe,
        trajectories,
        samples,
        report,
        n_by_split=n_by_split,
        funnel=funnel_of(workspace.tables, recipe.family, [key.partition for key in keys]),
        benchmarks=benchmark_names(workspace),
        replayed=None if n_replayed == 0 else replay([folder], limit=n_replayed),
        judging=judging_of(workspace.tables, recipe.family, [key.partition for key in keys]),
        reviewed=acceptance(read_reviews(workspace.tables, recipe.family)),
    )
    write_marker(shipped, inputs, card)
    return shipped


def samples_of(workspace: Workspace, keys: Sequence[TableKey]) -> dict[str, Sample]:
    """The samples of the partitions of ``keys``, by id."""
    tables = [workspace.tables.read(TableKey(SAMPLES, key.partition), Sample) for key in keys]
    return {sample.sample_id: sample for table in tables for sample in table}


def _write(
    workspace: Workspace,
    folder: Path,
    trajectories: Sequence[Trajectory],
    samples: Mapping[str, Sample],
    splits: Splits,
) -> tuple[Shipped, Mapping[str, int]]:
    def write(rows: Sequence[Trajectory], split: str) -> Shipped:
        pairs = ((samples[row.sample_id], row) for row in rows)
        return write_dataset(folder, pairs, store=workspace.images, split=split)

    return write_splits(folder, trajectories, write, split_of=lambda row: splits.of(row.sample_id))


def benchmark_names(workspace: Workspace) -> list[str]:
    """Those that were looked for."""
    listed = workspace.benchmarks
    return [benchmark.name for benchmark in read_benchmarks(listed)] if listed.exists() else []
