"""The flywheel's assets: its turns, its students, and what is said where one is missing."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.definitions import definitions
from darkroom.assets.graph.flywheel import (
    CHECKPOINT,
    DATASET,
    GROUP,
    ROWS,
    FlywheelResource,
    checkpoint_of,
    student_of,
    turn_partitions,
)
from darkroom.assets.graph.resources import PolicyResource
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import PolicyUnavailable
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.storage.workspace import Workspace

STUDENT = PolicyResource(kind="local", model="start")


def test_the_job_has_a_partition_for_each_shard_of_the_source(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Catalog(workspace.sources).add("walls", SourceConfig(kind="jsonl", path=str(tmp_path), n_shards=3))
    monkeypatch.setenv("DARKROOM_FLYWHEEL_SOURCE", "walls")
    job = definitions().resolve_job_def(GROUP)
    assert job.partitions_def.get_partition_keys() == ["turn-1", "turn-2", "turn-3"]
    assert job.asset_layer.executable_asset_keys == {ROWS, DATASET, CHECKPOINT}


def test_an_unknown_source_does_not_keep_the_graph_from_loading(workspace: Workspace) -> None:
    assert turn_partitions(workspace, "nothing").get_partition_keys() == ["turn-1"]


def test_the_first_student_is_configured_and_the_others_are_the_turns_before(workspace: Workspace) -> None:
    folder = checkpoint_of(workspace, "turn-1")
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert student_of(workspace, "turn-1", STUDENT).model == "start"
    assert student_of(workspace, "turn-2", STUDENT).model == str(folder)


def test_a_turn_without_its_student_names_the_turn_to_run(workspace: Workspace) -> None:
    with pytest.raises(dg.Failure, match=r"^turn-2 has no checkpoint yet: run the job flywheel for turn-2 first "):
        student_of(workspace, "turn-3", STUDENT)


def test_a_student_that_is_no_checkpoint_is_refused(workspace: Workspace) -> None:
    with pytest.raises(dg.Failure, match="set DARKROOM_STUDENT=local and DARKROOM_STUDENT_MODEL to its folder"):
        student_of(workspace, "turn-1", PolicyResource())


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(dg.Failure, match=r"^DARKROOM_FLYWHEEL_FAMILY is 'corp'; there are agentic_image, "):
        _ = FlywheelResource(family="corp").recipe


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(PolicyUnavailable, match=r"^DARKROOM_FLYWHEEL_KEEPS is 'all'"):
        FlywheelResource.from_environment({"DARKROOM_FLYWHEEL_KEEPS": "all"})


def test_a_local_policy_without_a_checkpoint_says_so(workspace: Workspace, tmp_path: Path) -> None:
    recipe = load_recipes()["crop"]
    with pytest.raises(PolicyUnavailable, match="DARKROOM_POLICY_MODEL: the folder of a checkpoint"):
        PolicyResource(kind="local").for_recipe(recipe, workspace)
    with pytest.raises(PolicyUnavailable, match=str(tmp_path)):
        PolicyResource(kind="local", model=str(tmp_path)).for_recipe(recipe, workspace)
