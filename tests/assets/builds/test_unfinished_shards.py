"""Shards on which nothing is left to do: looked at without a run, and by what a run itself would decide."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.builds.unfinished_shards import UnfinishedShards, are_shipped
from darkroom.assets.definitions import DATASETS, RL, SFT
from darkroom.assets.graph.datasets import SFT_DATASET
from darkroom.assets.graph.families import stage_key
from darkroom.assets.graph.resources import policies
from darkroom.assets.graph.rl import RL_STAGES
from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import PARTITION, add_signs, graph, materialize_shard
from tests.conftest import SmallSource

pytestmark = pytest.mark.e2e

CROP = [stage_key("crop", stage) for stage in (*STAGES, "rejects")]
PROMPTS = [dg.AssetKey(name) for name in RL_STAGES]
ROWS = dg.AssetKey(list(SAMPLES))
OTHER = "signs-0001"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dg.DagsterInstance]]:
    """A workspace whose first shard was built, and the history that says so: made once, copied by ``workspace``."""
    home = tmp_path_factory.mktemp("finished") / "home"
    with (
        pytest.MonkeyPatch.context() as patched,
        Workspace.from_environment({"DARKROOM_HOME": str(home)}) as opened,
        dg.instance_for_test() as instance,
    ):
        patched.setenv("DARKROOM_HOME", str(home))
        add_signs(opened, SmallSource(), home.with_name("signs"), n_shards=2)
        materialize_shard(instance, SFT, asset_selection=CROP)
        materialize_shard(instance, RL)
        assert graph().resolve_job_def(DATASETS).execute_in_process(instance=instance).success
        yield home, instance


@pytest.fixture
def built(made: tuple[Path, dg.DagsterInstance], workspace: Workspace) -> Workspace:
    """The test's own copy."""
    shutil.copytree(made[0], workspace.home, dirs_exist_ok=True)
    return workspace


@pytest.fixture
def history(made: tuple[Path, dg.DagsterInstance]) -> dg.DagsterInstance:
    return made[1]


def left(workspace: Workspace, instance: dg.DagsterInstance, keys: list[dg.AssetKey]) -> dict[str, bool]:
    shards = UnfinishedShards(workspace, instance, policies(), keys)
    return dict(shards.among([PARTITION, OTHER]))


@pytest.mark.parametrize("keys", [CROP, PROMPTS, [ROWS, *CROP, *PROMPTS][::-1]], ids=["family", "rl", "any order"])
def test_a_shard_that_was_built_is_finished_and_another_is_not(
    keys: list[dg.AssetKey], built: Workspace, history: dg.DagsterInstance
) -> None:
    assert left(built, history, keys) == {PARTITION: False, OTHER: True}


def test_a_look_writes_nothing(built: Workspace, history: dg.DagsterInstance) -> None:
    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in built.home.rglob("*.parquet")}

    before = files()
    left(built, history, [*CROP, *PROMPTS])
    assert files() == before


def test_a_shard_is_not_finished_once_its_source_has_changed(
    built: Workspace, history: dg.DagsterInstance, made: tuple[Path, dg.DagsterInstance]
) -> None:
    image = next(made[0].with_name("signs").rglob("*.jpg"))
    stat = image.stat()
    os.utime(image, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    try:
        assert left(built, history, [ROWS, *CROP])[PARTITION]
        assert not left(built, history, CROP)[PARTITION]  # what the source has become was not asked
    finally:
        os.utime(image, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize(("asset", "keys"), [("crop/runs", CROP), ("crop/rejects", CROP), ("pass_rates", PROMPTS)])
def test_a_shard_without_one_of_its_tables_is_not_finished(
    asset: str, keys: list[dg.AssetKey], built: Workspace, history: dg.DagsterInstance
) -> None:
    built.tables.path(TableKey(tuple(asset.split("/")), PARTITION)).unlink()
    assert left(built, history, keys)[PARTITION]


def test_a_shard_is_not_finished_once_another_policy_writes(
    built: Workspace, history: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DARKROOM_JUDGE", "openai")
    monkeypatch.setenv("DARKROOM_JUDGE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("DARKROOM_JUDGE_MODEL", "another")
    assert left(built, history, PROMPTS)[PARTITION]


def test_a_shard_is_not_finished_while_a_policy_lacks_its_settings(
    built: Workspace, history: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DARKROOM_POLICY", "openai")
    assert left(built, history, CROP)[PARTITION]


def test_tables_that_a_history_does_not_know_are_not_finished(built: Workspace, instance: dg.DagsterInstance) -> None:
    assert left(built, instance, CROP) == {PARTITION: True, OTHER: True}
    assert not are_shipped(built, instance, {})


def test_datasets_are_finished_until_others_are_asked_for_or_their_files_change(
    built: Workspace, history: dg.DagsterInstance
) -> None:
    assert are_shipped(built, history, {})
    assert not are_shipped(built, history, {"crop": 1})
    (built.dataset("sft", "crop") / "README.md").write_text("changed")
    assert not are_shipped(built, history, {})
    assert (built.dataset("sft", "crop") / "README.md").read_text() == "changed", "a look writes nothing"


def test_datasets_are_not_finished_once_trajectories_were_materialised_after_them(
    built: Workspace, instance: dg.DagsterInstance
) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization(CROP[3], partition=PARTITION))
    instance.report_runless_asset_event(dg.AssetMaterialization(SFT_DATASET))
    assert are_shipped(built, instance, {})
    instance.report_runless_asset_event(dg.AssetMaterialization(CROP[3], partition=OTHER))
    assert not are_shipped(built, instance, {})
