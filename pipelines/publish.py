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
    fingerprints = [[key.partition, workspace.tables.fingerprint(key)] for key in there]
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
        for trajectory in workspace.tables.read(key, Trajectory):
            if trajectory.trajectory_id in kept:
                rejects.append(_duplicate(recipe, key, trajectory))
            else:
                kept[trajectory.trajectory_id] = trajectory
    return Outcome(list(kept.values()), rejects, len(kept) + len(rejects))


def _duplicate(recipe: Recipe, key: TableKey, trajectory: Trajectory) -> Reject:
    return reject(
        Reason.DUPLICATE,
        f"an earlier partition holds the same trajectory; this one is in {key.partition}",
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
    samples = {
        sample.sample_id: sample
        for key in keys
        for sample in workspace.tables.read(TableKey(SAMPLES, key.partition), Sample)
    }
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
    if facts["inputs"] != inputs or not any(marker.parent.glob("*.parquet")):
        return None
    return Shipped(marker.parent, facts["n_rows"], facts["n_images"], facts["n_bytes"])
