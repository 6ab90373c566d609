"""What ships of the families does not change with samples that only RL data is made of, and no row is lost."""

from __future__ import annotations

import dagster as dg
import pytest

from darkroom.assets.graph import datasets
from darkroom.assets.graph.datasets import drafted_partitions
from darkroom.assets.graph.resources import WorkspaceResource
from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.publishing.shipping import PARTITION


class Sums:
    """A source that no family works on."""

    name, n_shards, fingerprint = "sums", 1, "sums"

    def rows(self, shard: int):
        yield SourceRow("sum/0", (), "What is 40 + 2?", "42")


def test_partitions_without_trajectories_are_not_looked_at(shipped, workspace: Workspace) -> None:
    engine.intake(workspace, Sums(), 0, "sums-0000")
    assert workspace.tables.exists(TableKey(SAMPLES, "sums-0000"))
    recipes = list(load_recipes().values())
    assert drafted_partitions(workspace.tables, recipes, [PARTITION, "sums-0000", "none-0000"]) == [PARTITION]


def test_rows_whose_sample_is_gone_are_quarantined_and_none_is_lost(
    shipped, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.intake(workspace, Sums(), 0, PARTITION)  # none of the trajectories' samples
    monkeypatch.setenv("DARKROOM_HOME", str(workspace.home))
    monkeypatch.setattr(datasets, "_shards", lambda _: [PARTITION])
    asset = datasets.sft_dataset_asset([load_recipes()["crop"]])
    made = dg.materialize([asset], resources={"workspace": WorkspaceResource()})
    [check] = made.get_asset_check_evaluations()
    counts = {name: value.value for name, value in check.metadata.items()}
    assert check.passed
    assert counts == {"rows_in": 4, "rows_out": 0, "rejected": 0, "quarantined": 4}
