"""Training on a Ray cluster: a real one of this machine."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest

from darkroom.assets.launching import LauncherResource
from tests.assets.launching.launches import failure, losses, materialized, run
from tests.soak.ray_cluster import ray_cluster
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster's dashboard."""
    with ray_cluster(n_workers=1) as started:
        yield started.url


@pytest.fixture
def launcher(cluster: str) -> LauncherResource:
    return LauncherResource(kind="ray", url=cluster, folder=str(ROOT))


def test_a_ray_job_reports_its_steps_and_its_result(
    launcher: LauncherResource, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    result = run(tmp_path / "out", launcher, instance)
    assert losses(instance) == [3.0, 1.5, 1.0]
    assert materialized(result)["final_loss"] == 1.0
    assert materialized(result)["ran_on"].startswith("Ray job raysubmit_")


def test_a_ray_job_that_fails_says_why(
    launcher: LauncherResource, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    assert failure(run(tmp_path / "out", launcher, instance, "no", "dataset")) == "no dataset"


def test_a_cancelled_run_stops_its_ray_job(
    cluster: str, clean_environment: dict[str, str], root: Path, tmp_path: Path
) -> None:
    (tmp_path / "home" / "dagster").mkdir(parents=True)
    settings = {**clean_environment, "DARKROOM_LAUNCH": "ray", "DARKROOM_LAUNCH_URL": cluster}
    with subprocess.Popen([sys.executable, "-m", "tests.e2e.hungry_run"], cwd=root, env=settings) as worker:
        alive = tmp_path / "home" / "checkpoints" / "hungry.job" / "1" / "alive"
        wait_until(lambda: worker.poll() is not None or alive.exists())
        assert worker.poll() is None
        programs = [one for one in psutil.process_iter() if is_hungry(one, tmp_path)]
        assert programs
        worker.send_signal(signal.SIGINT)
        _, left = psutil.wait_procs(programs, timeout=300)
        assert not left
        worker.wait(300)


def is_hungry(process: psutil.Process, home: Path) -> bool:
    try:
        return "tests.e2e.hungry" in process.cmdline() and process.environ().get("DARKROOM_EXCHANGE", "").startswith(
            str(home)
        )
    except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
