"""The small source, taken in, rolled out by the oracle, checked and shipped as the family ``crop``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.models.policies import oracle_policy
from darkroom.pipelines.publishing.parquet_shards import ShardWriter, prompt_row, trajectory_row, write_trajectories
from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace

PARTITION = "small-0000"


def ship(workspace: Workspace, source: Any) -> Path:
    """The folder of the shipped dataset: four rows; six were taken in, one without a box, one damaged."""
    recipe = load_recipes()["crop"]
    engine.intake(workspace, source, 0, PARTITION)
    family = Family(workspace, recipe, PARTITION)
    for stage in (family.draft, family.run):
        stage(oracle_policy(recipe.family, revision=recipe.digest))
    family.check()
    family.keep()
    folder = workspace.dataset("sft", "crop")
    write_trajectories(folder, shipped_pairs(workspace), store=workspace.images)
    return folder


def shipped_pairs(workspace: Workspace) -> list[tuple[Sample, Trajectory]]:
    """The rows that ``ship`` writes, with their samples."""
    samples = {made.sample_id: made for made in workspace.tables.read(TableKey(SAMPLES, PARTITION), Sample)}
    kept = workspace.tables.read(TableKey(("crop", "trajectories"), PARTITION), Trajectory)
    return [(samples[made.sample_id], made) for made in kept]


def write_held_out(folder: Path, pairs: Iterable[tuple[Sample, Trajectory]], *, store: Any) -> None:
    """Ships trajectories with their samples as the split validation."""
    with ShardWriter(folder, "trajectories", "validation") as writer:
        for sample, trajectory in pairs:
            writer.write(trajectory_row(sample, trajectory, store))


def write_prompts(folder: Path, rows: Any, *, store: Any, split: str) -> None:
    """Ships RL rows as a split of a dataset of their own."""
    with ShardWriter(folder, "prompts", split) as writer:
        for row in rows:
            writer.write(prompt_row(row, store))


def edit_rows(folder: Path, change: Any) -> None:
    """Replaces the rows of a dataset by what ``change`` makes of them, in place."""
    (path,) = folder.glob("*.parquet")
    table = pq.read_table(path)
    rows = [change(row) or row for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
