"""From trajectories to a shipped dataset: all partitions of a family in one folder, each row once, with its card."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipelines.card import CARD_TEMPLATE, write_card
from pipelines.digest import digest, digest_bytes
from pipelines.engine import SAMPLES
from pipelines.export import Shipped, write_dataset
from pipelines.recipes.base import Recipe
from pipelines.records import Reject, Sample, Trajectory, to_row
from pipelines.rejects import Reason, reject
from pipelines.stages import Outcome, Report, code_digest, run_stage
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

ASSET = ("sft_dataset",)
_MARKER = ".darkroom.json"  # a hidden file: `datasets` must not take it for data


def publish(workspace: Workspace, recipe: Recipe, partitions: Sequence[str]) -> tuple[Report, Shipped]:
    """Ships the family's trajectories of those ``partitions`` that are materialised, in their order.

    A trajectory that an earlier partition holds as well (two sources with the same sample) is a ``duplicate`` reject.
    """
    keys = [TableKey((recipe.family, "trajectories"), partition) for partition in partitions]
    there = [key for key in keys if workspace.tables.exists(key)]
    samples = {key.partition: TableKey(SAMPLES, key.partition) for key in there}
    fingerprints = [
        [key.partition, workspace.tables.fingerprint(key), workspace.tables.fingerprint(samples[key.partition])]
        for key in there
    ]
    inputs = digest(["sft_dataset", recipe.family, recipe.digest, fingerprints, code_digest(), CARD_TEMPLATE])
    key = TableKey(ASSET, recipe.family)
    report = run_stage(
        workspace.tables, key, Trajectory, inputs=inputs, perform=lambda: _gather(workspace, recipe, there)
    )
    return report, _ship(workspace, recipe, there, report, inputs)


def _gather(workspace: Workspace, recipe: Recipe, keys: Sequence[TableKey]) -> Outcome[Trajectory]:
    kept: dict[str, Trajectory] = {}
    rejects: list[Reject] = []
    for key in keys:
        there = _samples(workspace, [key])
        for trajectory in workspace.tables.read(key, Trajectory):
            if trajectory.trajectory_id in kept:
                said = f"an earlier partition holds the same trajectory; this one is in {key.partition}"
                rejects.append(_taken_out(recipe, trajectory, Reason.DUPLICATE, said))
            elif trajectory.sample_id not in there:
                said = f"its sample is no longer in {key.partition}; materialise {recipe.family} for that partition"
                rejects.append(_taken_out(recipe, trajectory, Reason.STALE, said))
            else:
                kept[trajectory.trajectory_id] = trajectory
    return Outcome(list(kept.values()), rejects, len(kept) + len(rejects))


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


def _ship(workspace: Workspace, recipe: Recipe, keys: Sequence[TableKey], report: Report, inputs: str) -> Shipped:
    folder = workspace.dataset("sft", recipe.family)
    marker = folder / _MARKER
    if (found := _shipped(marker, inputs)) is not None:
        return found
    samples = _samples(workspace, keys)
    trajectories = workspace.tables.read(report.key, Trajectory)
    card = write_card(recipe, trajectories, samples, report)

    def pairs() -> Iterator[tuple[Sample, Trajectory]]:
        for trajectory in trajectories:
            yield samples[trajectory.sample_id], trajectory

    shipped = write_dataset(folder, pairs(), store=workspace.images, card=card)
    facts = {"inputs": inputs, "n_rows": shipped.n_rows, "n_images": shipped.n_images, "n_bytes": shipped.n_bytes}
    marker.write_text(json.dumps(facts | {"card": digest_bytes(card.encode())}, sort_keys=True))
    return shipped


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
