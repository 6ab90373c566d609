"""One family's folder: a parquet file per split, the card, and a marker that says from what they were written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipelines.card import write_card
from pipelines.decontamination import read_benchmarks
from pipelines.digest import digest_bytes
from pipelines.engine import SAMPLES
from pipelines.export import Shipped, write_dataset
from pipelines.funnel import funnel_of
from pipelines.judging import judging_of
from pipelines.recipes.base import Recipe
from pipelines.records import Sample, Trajectory
from pipelines.replay import replay
from pipelines.reviews import acceptance, read_reviews
from pipelines.splits import SPLITS, Splits
from pipelines.stages import Report
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

_MARKER = ".darkroom.json"  # a hidden file: `datasets` must not take it for data


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
    marker = folder / _MARKER
    if (found := _shipped(marker, inputs)) is not None:
        return found
    marker.unlink(missing_ok=True)
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
        benchmarks=_benchmarks(workspace),
        replayed=None if n_replayed == 0 else replay([folder], limit=n_replayed),
        judging=judging_of(workspace.tables, recipe.family, [key.partition for key in keys]),
        reviewed=acceptance(read_reviews(workspace.tables, recipe.family)),
    )
    (folder / "README.md").write_text(card)
    facts = {"inputs": inputs, "n_rows": shipped.n_rows, "n_images": shipped.n_images, "n_bytes": shipped.n_bytes}
    marker.write_text(json.dumps(facts | {"card": digest_bytes(card.encode())}, sort_keys=True))
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
    """A file per split that has rows; the training split's is there without rows, too."""
    by_split: dict[str, list[Trajectory]] = {
        split: [row for row in trajectories if splits.of(row.sample_id) == split] for split in SPLITS
    }
    parts = [
        write_dataset(folder, ((samples[row.sample_id], row) for row in rows), store=workspace.images, split=split)
        for split, rows in by_split.items()
        if rows or split == "train"
    ]
    for path in folder.glob("*.parquet"):
        if not by_split.get(path.name.split("-")[0]) and not path.name.startswith("train-"):
            path.unlink()
    sums = (sum(getattr(part, name) for part in parts) for name in ("n_rows", "n_images", "n_bytes"))
    return Shipped(folder, *sums), {split: len(rows) for split, rows in by_split.items()}


def _benchmarks(workspace: Workspace) -> list[str]:
    listed = workspace.benchmarks
    return [benchmark.name for benchmark in read_benchmarks(listed)] if listed.exists() else []


def _shipped(marker: Path, inputs: str) -> Shipped | None:
    """What lies there, if it was written whole from the same inputs."""
    if not marker.exists():
        return None
    facts = json.loads(marker.read_text())
    card = marker.with_name("README.md")
    if facts["inputs"] != inputs or not any(marker.parent.glob("*.parquet")) or not card.exists():
        return None
    if digest_bytes(card.read_bytes()) != facts["card"]:
        return None
    return Shipped(marker.parent, facts["n_rows"], facts["n_images"], facts["n_bytes"])
