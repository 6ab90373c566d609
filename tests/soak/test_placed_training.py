"""Training on a cluster: a run like a shard's, whose programs are child processes of it there."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest

from darkroom.assets.clusters.placement import RUNS_ON_TAG, TRAIN
from tests.e2e.team import ROOT, Team, command, team
from tests.soak.ray_cluster import ray_cluster
from tests.waiting import wait_until


@pytest.fixture(params=["slurm", "ray"])
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, str]]]:
    """The placement, and the variables that its command needs."""
    if request.param == "slurm":
        yield "slurm", {"SLURM_CONF": request.getfixturevalue("slurm")}
        return
    with ray_cluster(n_workers=1) as started:
        yield started.url, {}


@pytest.mark.timeout(3600)  # a whole training of the tiny model, on the cores that all daemons share
def test_a_training_on_a_cluster_is_cancelled_with_its_command_and_the_next_one_ends_it(
    cluster: tuple[str, dict[str, str]], clean_environment: dict[str, str], tmp_path: Path
) -> None:
    runs_on, variables = cluster
    with team(tmp_path, clean_environment | variables) as found:
        subprocess.run(command(), cwd=ROOT, env=found.settings, check=True, capture_output=True)
        words = command("--train", "--on", runs_on)
        with (tmp_path / "log").open("wb") as log:
            with subprocess.Popen(words, cwd=ROOT, env=found.settings, stdout=log, stderr=log) as cancelled:
                wait_until(lambda: bool(programs(tmp_path)) or cancelled.poll() is not None)
                assert cancelled.poll() is None, found.log
                at_work = programs(tmp_path)
                cancelled.send_signal(signal.SIGINT)
                assert cancelled.wait(300) == 130, found.log
            _, left = psutil.wait_procs(at_work, timeout=300)
            assert not left
            wait_until(lambda: statuses(found) == [dg.DagsterRunStatus.CANCELED])
            again = subprocess.run(words, cwd=ROOT, env=found.settings, stdout=log, stderr=log, check=False)
        assert again.returncode == 0, found.log
        assert statuses(found) == [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.CANCELED]
        assert {run.tags[RUNS_ON_TAG] for run in trainings(found)} == {runs_on}
        assert "sft_checkpoint" in found.log
        assert (tmp_path / "home" / "checkpoints" / "sft" / "training.json").exists()


def trainings(found: Team) -> list[dg.DagsterRun]:
    """Newest first."""
    return list(found.instance.get_runs(dg.RunsFilter(job_name=TRAIN)))


def statuses(found: Team) -> list[dg.DagsterRunStatus]:
    return [run.status for run in trainings(found)]


def programs(folder: Path) -> list[psutil.Process]:
    """The programs that train, of this test's home."""
    return [process for process in psutil.process_iter() if is_training(process, folder)]


def is_training(process: psutil.Process, folder: Path) -> bool:
    try:
        is_ours = process.environ().get("DARKROOM_LOCAL", "").startswith(str(folder))
        return is_ours and "darkroom.train.sft" in process.cmdline()
    except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
