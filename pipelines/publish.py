"""From trajectories to a shipped dataset: all partitions of a family in one folder, each row once, with its card.

A family's quota takes exactly so many rows (``pipelines/selection.py``); no image crosses the splits, in any family
(``pipelines/splits.py``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pipelines.card import CARD_TEMPLATE, write_card
from pipelines.decontamination import read_benchmarks
from pipelines.digest import digest, digest_bytes
from pipelines.engine import SAMPLES
from pipelines.export import Shipped, write_dataset
from pipelines.funnel import funnel_of
from pipelines.recipes.base import Recipe
from pipelines.records import Reject, Sample, Trajectory, to_row
from pipelines.rejects import Reason, reject
from pipelines.screening import Screening
from pipelines.selection import Candidate, difficulty, select
from pipelines.splits import SPLITS, Splits, grouped
from pipelines.stages import Outcome, Report, code_digest, run_stage
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

ASSET = ("sft_dataset",)
_MARKER = ".darkroom.json"  # a hidden file: `datasets` must not take it for data


def publish(
    workspace: Workspace,
    recipe: Recipe,
    partitions: Sequence[str],
    *,
    n_rows: int | None = None,
    validation_share: float = 0.0,
    screening: Screening | None = None,
) -> tuple[Report, Shipped]:
    """Ships the family's trajectories of those ``partitions`` that are materialised, in their order.

    A trajectory that an earlier partition holds as well (two sources with the same sample) is a ``duplicate`` reject;
    beyond ``n_rows`` (None: all) it is ``not_selected``. ``screening`` takes out near-duplicates and rows of
    benchmarks; give the same one to all families.
    """
    screening = screening or Screening(workspace)
    keys = [TableKey((recipe.family, "trajectories"), partition) for partition in partitions]
    there = [key for key in keys if workspace.tables.exists(key)]
    splits = _splits(workspace, partitions, validation_share)
    inputs = _inputs(workspace, recipe, there, [n_rows, validation_share, splits.groups, screening.fingerprint])
    key = TableKey(ASSET, recipe.family)
    report = run_stage(
        workspace.tables,
        key,
        Trajectory,
        inputs=inputs,
        perform=lambda: _gather(workspace, recipe, there, n_rows, screening),
    )
    return report, _ship(workspace, recipe, there, report, inputs, splits)


def _inputs(workspace: Workspace, recipe: Recipe, there: Sequence[TableKey], settings: object) -> str:
    tables = workspace.tables
    fingerprints = [
        [key.partition, tables.fingerprint(key), tables.fingerprint(TableKey(SAMPLES, key.partition))] for key in there
    ]
    return digest(["sft_dataset", recipe.family, recipe.digest, fingerprints, code_digest(), CARD_TEMPLATE, settings])


def _splits(workspace: Workspace, partitions: Sequence[str], validation_share: float) -> Splits:
    """Over the samples of all partitions and so of all families: what one family trains on, none validates on."""
    keys = [TableKey(SAMPLES, partition) for partition in partitions]
    there = [key for key in keys if workspace.tables.exists(key)]
    samples = (sample for key in there for sample in workspace.tables.read(key, Sample))
    return grouped(samples, validation_share=validation_share)


def _gather(
    workspace: Workspace, recipe: Recipe, keys: Sequence[TableKey], n_rows: int | None, screening: Screening
) -> Outcome[Trajectory]:
    kept: dict[str, Trajectory] = {}
    samples: dict[str, Sample] = {}
    rejects: list[Reject] = []
    n_in = 0
    for key in keys:
        there = _samples(workspace, [key])
        samples |= there
        for trajectory in workspace.tables.read(key, Trajectory):
            n_in += 1
            if trajectory.trajectory_id in kept:
                said = f"an earlier partition holds the same trajectory; this one is in {key.partition}"
                rejects.append(_taken_out(recipe, trajectory, Reason.DUPLICATE, said))
            elif trajectory.sample_id not in there:
                said = f"its sample is no longer in {key.partition}; materialise {recipe.family} for that partition"
                rejects.append(_taken_out(recipe, trajectory, Reason.STALE, said))
            else:
                kept[trajectory.trajectory_id] = trajectory
    screened = screening.screen(recipe.family, [(samples[row.sample_id], row) for row in kept.values()])
    for row_id, fault in screened.faults.items():
        rejects.append(_taken_out(recipe, kept.pop(row_id), fault.reason, fault.evidence))
    if n_rows is not None:
        rejects += _beyond(recipe, kept, samples, n_rows)
    return Outcome(list(kept.values()), rejects, n_in)


def _beyond(recipe: Recipe, kept: dict[str, Trajectory], samples: dict[str, Sample], n_rows: int) -> list[Reject]:
    """Takes what the quota does not select out of ``kept``."""
    candidates = [
        Candidate(row_id, samples[row.sample_id].category, difficulty(samples[row.sample_id]))
        for row_id, row in kept.items()
    ]
    selected = select(candidates, n_rows)
    said = f"the quota of {recipe.family} is {n_rows} rows, and others were selected"
    out = [kept.pop(candidate.row_id) for candidate in candidates if candidate.row_id not in selected]
    return [_taken_out(recipe, row, Reason.NOT_SELECTED, said) for row in out]


def _samples(workspace: Workspace, keys: Sequence[TableKey]) -> dict[str, Sample]:
    tables = [workspace.tables.read(TableKey(SAMPLES, key.partition), Sample) for key in keys]
    return {sample.sample_id: sample for table in tables for sample in table}


def _taken_out(recipe: Recipe, trajectory: Trajectory, reason: Reason, evidence: str) -> Reject:
    return reject(
        reason,
        evidence,
        stage="sft_dataset",
        row=to_row(trajectory),
        family=recipe.family,
        sample_id=trajectory.sample_id,
        trajectory_id=trajectory.trajectory_id,
    )


def _ship(
    workspace: Workspace, recipe: Recipe, keys: Sequence[TableKey], report: Report, inputs: str, splits: Splits
) -> Shipped:
    folder = workspace.dataset("sft", recipe.family)
    marker = folder / _MARKER
    if (found := _shipped(marker, inputs)) is not None:
        return found
    marker.unlink(missing_ok=True)
    samples = _samples(workspace, keys)
    trajectories = workspace.tables.read(report.key, Trajectory)
    by_split: dict[str, list[Trajectory]] = {
        split: [row for row in trajectories if splits.of(row.sample_id) == split] for split in SPLITS
    }
    n_by_split = {split: len(rows) for split, rows in by_split.items()}
    funnel = funnel_of(workspace.tables, recipe.family, [key.partition for key in keys])
    listed = workspace.benchmarks
    benchmarks = [benchmark.name for benchmark in read_benchmarks(listed)] if listed.exists() else []
    card = write_card(recipe, trajectories, samples, report, n_by_split, funnel, benchmarks)
    written = [
        _write_split(workspace, folder, rows, samples, card, split)
        for split, rows in by_split.items()
        if rows or split == "train"
    ]
    _remove_others(folder, [split for split, rows in by_split.items() if rows or split == "train"])
    shipped = Shipped(
        folder,
        sum(part.n_rows for part in written),
        sum(part.n_images for part in written),
        sum(part.n_bytes for part in written),
    )
    facts = {"inputs": inputs, "n_rows": shipped.n_rows, "n_images": shipped.n_images, "n_bytes": shipped.n_bytes}
    marker.write_text(json.dumps(facts | {"card": digest_bytes(card.encode())}, sort_keys=True))
    return shipped


def _write_split(
    workspace: Workspace,
    folder: Path,
    rows: Sequence[Trajectory],
    samples: dict[str, Sample],
    card: str,
    split: str,
) -> Shipped:
    pairs = ((samples[row.sample_id], row) for row in rows)
    return write_dataset(folder, pairs, store=workspace.images, card=card, split=split)


def _remove_others(folder: Path, splits: Sequence[str]) -> None:
    for path in folder.glob("*.parquet"):
        if path.name.split("-")[0] not in splits:
            path.unlink()


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
