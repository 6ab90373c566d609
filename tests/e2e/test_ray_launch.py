"""Training on a Ray cluster: a real one of this machine, from Ray's own package, which is installed nowhere else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest

from assets.launching import LauncherResource
from scripts.ports import free_port
from tests.assets.launching.test_launching import failure, losses, materialized, run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster's dashboard."""
    # a short path: it holds the cluster's sockets, whose paths have at most 107 bytes
    folder, dashboard = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp")), free_port()
    uv = str(Path(sys.executable).with_name("uv"))
    command = [
        uv,
        "tool",
        "run",
        "--python",
        sys.executable,
        "--from",
        "ray[default]==2.60.*",
        "ray",
        "start",
        "--head",
    ]
    ports = ["--port", str(free_port()), "--dashboard-host", "127.0.0.1", "--dashboard-port", str(dashboard)]
    ports += ["--dashboard-agent-listen-port", str(free_port())]
    settings = ["--block", "--disable-usage-stats", "--num-cpus", "2", "--temp-dir", str(folder)]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_DISABLE_DOCKER_CPU_WARNING": "1"}
    environment["RAY_memory_monitor_refresh_ms"] = "0"  # it kills jobs where others use the machine's memory
    log = (folder / "log").open("wb")
    with subprocess.Popen(
        [*command, *ports, *settings], env=environment, stdout=log, stderr=log, start_new_session=True
    ) as process:
        url = f"http://127.0.0.1:{dashboard}"
        try:
            wait_for(f"{url}/api/version", process, folder / "log")
            yield url
        finally:
            ended = process.poll() is not None  # what it said is the test's message, and no error of the tidying
            tree = [] if ended else [process, *psutil.Process(process.pid).children(recursive=True)]
            for member in tree:
                if psutil.pid_exists(member.pid):
                    os.kill(member.pid, signal.SIGKILL)
            log.close()
            shutil.rmtree(folder, ignore_errors=True)


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 6000
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(1)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made


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
        deadline = time.monotonic() + 600
        while not alive.exists():
            assert time.monotonic() < deadline
            assert worker.poll() is None
            time.sleep(0.2)
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
