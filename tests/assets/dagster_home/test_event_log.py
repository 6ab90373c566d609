"""Dagster's event log with its connections kept: others read it at once, and few files stay open."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.dagster_home.history import open_instance
from darkroom.assets.dagster_home.instance import prepare_dagster_home
from darkroom.pipelines.storage.workspace import Workspace

KILLED = """
import os, signal
import dagster as dg
from darkroom.assets.dagster_home.history import open_instance

@dg.op
def told(context):
    context.log.info("told")
    os.kill(os.getpid(), signal.SIGKILL)

@dg.job
def telling():
    told()

telling.execute_in_process(instance=open_instance(), run_id="0b8a6cf2-5f2d-4d1c-9d0e-7f5f0d8a3c11")
"""


@dg.op
def told(context: dg.OpExecutionContext) -> None:
    context.log.info("told")
    context.log_event(dg.AssetObservation("something", metadata={"n": 1}))


@dg.job
def telling() -> None:
    told()


@pytest.fixture
def instance(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("DAGSTER_HOME", str(workspace.local / "dagster"))
    prepare_dagster_home(workspace)
    with open_instance() as instance:
        yield instance


def open_files(instance: dg.DagsterInstance) -> set[Path]:
    paths = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    opened = [path.readlink() for path in paths if path.is_symlink()]
    return {path for path in opened if path.is_relative_to(instance.root_directory) and path.suffix == ".db"}


def messages(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    return [entry.user_message for entry in instance.all_logs(run_id)]


def test_others_read_a_run_while_its_files_are_open(instance: dg.DagsterInstance) -> None:
    run_id = telling.execute_in_process(instance=instance).run_id
    assert open_files(instance)
    with dg.DagsterInstance.get() as other:
        assert "told" in messages(other, run_id)
        assert messages(other, run_id) == messages(instance, run_id)
        assert other.fetch_observations(dg.AssetKey("something"), limit=9).records[0].run_id == run_id


def test_few_files_stay_open_and_none_after_the_instance(instance: dg.DagsterInstance) -> None:
    run_ids = [telling.execute_in_process(instance=instance).run_id for _ in range(6)]
    assert 0 < len(open_files(instance)) <= 4
    assert all("told" in messages(instance, run_id) for run_id in run_ids)
    instance.dispose()
    assert not open_files(instance)


def test_what_was_told_before_a_kill_is_there(instance: dg.DagsterInstance) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert "told" in messages(instance, "0b8a6cf2-5f2d-4d1c-9d0e-7f5f0d8a3c11")
