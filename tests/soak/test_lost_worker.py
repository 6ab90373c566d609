"""A source is added while the UI runs, and its run is killed with -9 in the middle: the daemon repeats it by itself."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.clusters.worker import WORKER_TAG
from darkroom.assets.definitions import SFT
from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import PARTITION, add_signs, materialize_shard
from tests.conftest import SmallSource
from tests.e2e.demo_runs import digests, ledger
from tests.e2e.test_cancelled_training import ask, launch, started
from tests.ports import free_port
from tests.waiting import answers, wait_until

CROP = [["crop", stage] for stage in ("drafts", "runs", "verdicts", "trajectories", "rejects")]


@pytest.fixture
def ui(root: Path, clean_environment: dict[str, str]) -> Iterator[int]:
    """The port of a UI with its daemon, which is being started."""
    folder, port = Path(clean_environment["DAGSTER_HOME"]), free_port()
    folder.mkdir(parents=True)
    shutil.copy(root / "assets" / "dagster.yaml", folder)
    command = [str(Path(sys.executable).with_name("dg")), "dev", "--host", "127.0.0.1", "--port", str(port)]
    with started(command, root, clean_environment) as process:
        yield port
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def undisturbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which nothing was killed."""
    home = tmp_path / "undisturbed"
    monkeypatch.setenv("DARKROOM_HOME", str(home))
    with Workspace.from_environment() as workspace, dg.instance_for_test() as instance:
        add_signs(workspace, SmallSource(), tmp_path / "signs")
        chosen = [dg.AssetKey(path) for path in CROP]
        assert materialize_shard(instance, SFT, asset_selection=chosen).success
    return home


def test_a_run_whose_process_is_killed_is_repeated_to_the_same_bytes(
    ui: int, undisturbed: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    wait_until(lambda: answers(f"http://127.0.0.1:{ui}/server_info"))
    shutil.copytree(undisturbed / "sources", home / "sources")
    wait_until(lambda: PARTITION in partitions(ui))
    first = launch(ui, SFT, CROP, {}, partition=PARTITION)
    wait_until(lambda: n_turns(home) > 0)
    durable = ledger(home)
    os.kill(int(run_of(home, first).tags[WORKER_TAG].split("/")[2]), signal.SIGKILL)
    repeated = wait_until(lambda: finished_retry(home, first))
    assert run_of(home, first).status == dg.DagsterRunStatus.FAILURE
    assert repeated.status == dg.DagsterRunStatus.SUCCESS
    assert repeated.tags["dagster/parent_run_id"] == first
    after = ledger(home)
    assert {key: after.get(key) for key in durable} == durable, "an act that was durable was made again"
    assert after.keys() == ledger(undisturbed).keys()
    assert digests(home, "tables") == digests(undisturbed, "tables")


def partitions(port: int) -> list[str]:
    query = """{ assetNodeOrError(assetKey: {path: ["crop", "drafts"]}) { ... on AssetNode { partitionKeys } } }"""
    found: list[str] = ask(port, query)["assetNodeOrError"]["partitionKeys"]
    return found


def n_turns(home: Path) -> int:
    try:
        with sqlite3.connect(f"file:{home / 'ledger.sqlite'}?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT count(*) FROM acts WHERE kind = 'policy'").fetchone()[0])
    except sqlite3.OperationalError:  # not made yet
        return 0


def run_of(home: Path, run_id: str) -> dg.DagsterRun:
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        run = instance.get_run_by_id(run_id)
    assert run is not None
    return run


def finished_retry(home: Path, run_id: str) -> dg.DagsterRun | None:
    """The run that repeats it, once it has ended."""
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        retries = instance.get_runs(dg.RunsFilter(tags={"dagster/parent_run_id": run_id}))
    return next((run for run in retries if run.is_finished), None)
