"""Training as a Slurm job: a real Slurm with one node, this machine, under a configuration of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import psutil
import pytest

from darkroom.assets.launching import LauncherResource
from tests.assets.launching.launches import failure, losses, materialized, run
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def launcher(slurm: str) -> LauncherResource:
    return LauncherResource(kind="slurm", submit=True, folder=str(ROOT), options="--comment='a test'")


def test_a_slurm_job_reports_its_steps_and_its_result(
    launcher: LauncherResource, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    result = run(tmp_path / "out", launcher, instance)
    assert losses(instance) == [3.0, 1.5, 1.0]
    assert materialized(result)["final_loss"] == 1.0
    assert materialized(result)["ran_on"].startswith("Slurm job ")
    assert list((tmp_path / "out.job" / "1").glob("log-*"))


def test_a_slurm_job_that_fails_says_why(
    launcher: LauncherResource, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    assert failure(run(tmp_path / "out", launcher, instance, "no", "dataset")) == "no dataset"


def test_a_job_that_slurm_refuses_says_so(slurm: str, instance: dg.DagsterInstance, tmp_path: Path) -> None:
    refused = LauncherResource(kind="slurm", submit=True, folder=str(ROOT), options="--partition=mars")
    assert "invalid partition" in failure(run(tmp_path / "out", refused, instance))


def test_a_script_that_somebody_has_submitted_is_not_submitted_again(
    launcher: LauncherResource, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    script = written_script(tmp_path / "out", instance)
    job = subprocess.run(["sbatch", "--parsable", "--hold", script], check=True, capture_output=True, text=True).stdout
    releaser = threading.Thread(target=release, args=(job.strip(), instance))
    releaser.start()
    try:
        found = materialized(run(tmp_path / "out", launcher, instance))
    finally:
        releaser.join()
    assert (found["final_loss"], found["ran_on"]) == (1.0, f"Slurm job {job.strip()}")
    (log,) = (tmp_path / "out.job" / "1").glob("log-*")
    assert log.is_file()


def release(job: str, instance: dg.DagsterInstance) -> None:
    """Lets a held job start as soon as a run says that it follows it; after ten minutes also without."""
    try:
        wait_until(lambda: f"Slurm job {job}" in said(instance))
    finally:
        subprocess.run(["scontrol", "release", job], check=True)


def said(instance: dg.DagsterInstance) -> str:
    """All messages of all runs."""
    return "\n".join(event.user_message for run in instance.get_runs() for event in instance.all_logs(run.run_id))


def test_the_result_of_a_script_that_somebody_ran_is_taken(
    launcher: LauncherResource, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    subprocess.run(["sbatch", "--wait", written_script(tmp_path / "out", instance)], check=True)
    found = materialized(run(tmp_path / "out", launcher, instance))
    assert found["final_loss"] == 1.0
    assert found["ran_on"].startswith("handed over")
    (log,) = (tmp_path / "out.job" / "1").glob("log-*")
    assert log.is_file()


def written_script(output: Path, instance: dg.DagsterInstance) -> str:
    """The script of a run that left its job to be started by hand."""
    by_hand = LauncherResource(kind="slurm", wait_hours=0.0, folder=str(ROOT))
    assert "the job was not started yet" in failure(run(output, by_hand, instance))
    return str(output.with_name(f"{output.name}.job") / "1" / "job.sbatch")


@pytest.fixture
def settings(slurm: str, clean_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home" / "dagster").mkdir(parents=True)
    return {**clean_environment, "DARKROOM_LAUNCH": "slurm", "DARKROOM_LAUNCH_SUBMIT": "1", "SLURM_CONF": slurm}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The job's folder."""
    return tmp_path / "home" / "checkpoints" / "hungry.job" / "1"


@contextmanager
def worker_of(root: Path, settings: dict[str, str], folder: Path, words: str) -> Iterator[subprocess.Popen[str]]:
    """A run of Dagster; given when its log says ``words`` and the job reports."""
    command = [sys.executable, "-m", "tests.e2e.hungry_run"]
    with subprocess.Popen(command, cwd=root, env=settings, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        said = next((line for line in worker.stderr if words in line), None)
        assert said is not None, "the run ended by itself"
        wait_until(lambda: worker.poll() is not None or '"step"' in text(folder / "messages"))
        drain = threading.Thread(target=worker.stderr.read, daemon=True)
        drain.start()
        try:
            yield worker
        finally:
            worker.kill()
            drain.join()


def processes_of(home: Path) -> list[psutil.Process]:
    (program,) = [one for one in psutil.process_iter() if is_hungry(one, home)]
    return [program, *program.children(recursive=True)]


@pytest.mark.parametrize("who", ["the run is cancelled", "somebody runs scancel"])
def test_a_job_that_is_cancelled_ends_with_its_sandboxes(
    settings: dict[str, str], root: Path, tmp_path: Path, folder: Path, who: str
) -> None:
    with worker_of(root, settings, folder, "Slurm job") as worker:
        processes = processes_of(tmp_path)
        assert any("sandbox" in " ".join(process.cmdline()) for process in processes)
        if who == "the run is cancelled":
            worker.send_signal(signal.SIGINT)
        else:
            subprocess.run(["scancel", "--name", "darkroom-hungry"], check=True)
        _, left = psutil.wait_procs(processes, timeout=300)
        assert not left
        assert worker.wait(300) != 0
    assert "told to end" in text(folder / "fault")


def test_a_job_whose_run_was_killed_goes_on_and_the_next_run_takes_it_over(
    settings: dict[str, str], root: Path, tmp_path: Path, folder: Path
) -> None:
    with worker_of(root, settings, folder, "Slurm job") as worker:
        processes = processes_of(tmp_path)
        worker.kill()
    with worker_of(root, settings, folder, "taken over from an earlier run") as worker:
        assert processes_of(tmp_path)[0] == processes[0]
        worker.send_signal(signal.SIGINT)
        _, left = psutil.wait_procs(processes, timeout=300)
        assert not left


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def is_hungry(process: psutil.Process, home: Path) -> bool:
    try:
        mine = process.environ().get("DARKROOM_EXCHANGE", "").startswith(str(home))
        return mine and "tests.e2e.hungry" in process.cmdline()
    except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
