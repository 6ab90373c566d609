"""A launched program: what it reports becomes the asset's, and how it fails, is late or is cancelled."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest

from darkroom.assets.launching import LauncherResource
from darkroom.assets.launching.handoff import HandedOverJob
from darkroom.assets.launching.order import MOST_OBSERVATIONS, _is_alive, _is_observed
from darkroom.train.runs.supervisor import JobDirectory
from tests.assets.launching.launches import failure, losses, materialized, run
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("n_steps", [1, 7, 100, 101, 250, 10_000])
def test_a_run_has_few_observations_and_the_first_and_last_step_among_them(n_steps: int) -> None:
    observed = [step for step in range(1, n_steps + 1) if _is_observed(step, n_steps)]
    assert len(observed) <= MOST_OBSERVATIONS + 2
    assert {1, n_steps} <= set(observed)
    assert n_steps > MOST_OBSERVATIONS or len(observed) == n_steps


def test_steps_are_observed_and_the_result_is_the_assets(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    result = run(tmp_path / "out", LauncherResource(), instance)
    assert losses(instance) == [3.0, 1.5, 1.0]
    found = materialized(result)
    assert (found["final_loss"], found["version"]) == (1.0, "of its inputs")
    assert found["command"] == f"{sys.executable} -m tests.assets.little"
    assert found["ran_on"].startswith("this machine, process ")


def test_a_program_that_fails_says_why_in_the_runs_failure(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    assert failure(run(tmp_path / "out", LauncherResource(), instance, "no", "dataset")) == "no dataset"


class CancelledAtOnce:
    """A job whose run is cancelled while its first line is written to the log, whose logger swallows it."""

    def __init__(self) -> None:
        self.n_asked, self.is_stopped = 0, False

    @property
    def where(self) -> str:
        self.n_asked += 1
        if self.n_asked == 1:
            with suppress(BaseException):
                signal.raise_signal(signal.SIGINT)
        return "a job"

    def ended(self, *, closed: bool) -> None:
        raise AssertionError("nobody waits for it")

    def stop(self) -> None:
        self.is_stopped = True


def test_a_run_that_is_cancelled_as_its_job_starts_ends_the_job(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = CancelledAtOnce()
    monkeypatch.setattr("darkroom.assets.launching.run.start", lambda *_: job)
    with suppress(dg.DagsterExecutionInterruptedError):
        run(tmp_path / "out", LauncherResource(), instance)
    assert job.is_stopped


SLURM = LauncherResource(kind="slurm", wait_hours=0.05, folder=str(ROOT))


def test_a_job_that_may_have_been_started_when_the_run_was_cancelled_is_told_to_stop(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancelled(*_: object) -> None:
        raise dg.DagsterExecutionInterruptedError

    monkeypatch.setattr("darkroom.assets.launching.run.start", cancelled)
    with suppress(dg.DagsterExecutionInterruptedError):
        run(tmp_path / "out", SLURM, instance)
    assert (tmp_path / "out.job" / "1" / "stop").exists()


def started_by_hand(output: Path) -> threading.Thread:
    """Somebody who waits for the script, and runs it as Slurm would."""

    def start() -> None:
        path = output.with_name("out.job") / "1" / "job.sbatch"
        wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
        subprocess.run(["bash", str(path)], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    thread = threading.Thread(target=start)
    thread.start()
    return thread


def test_a_job_that_was_handed_over_reports_back(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    somebody = started_by_hand(tmp_path / "out")
    result = run(tmp_path / "out", SLURM, instance)
    somebody.join()
    assert losses(instance) == [3.0, 1.5, 1.0]
    assert materialized(result)["final_loss"] == 1.0
    assert materialized(result)["ran_on"] == f"handed over: sbatch {tmp_path}/out.job/1/job.sbatch"


def test_a_job_that_was_handed_over_and_fails_says_why(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    somebody = started_by_hand(tmp_path / "out")
    assert failure(run(tmp_path / "out", SLURM, instance, "no", "dataset")) == "no dataset"
    somebody.join()


def test_a_job_started_after_the_run_gave_up_is_taken_in_by_the_next_one(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    at_once = LauncherResource(kind="slurm", wait_hours=0.0, folder=str(ROOT))
    said = failure(run(tmp_path / "out", at_once, instance))
    assert f"sbatch {tmp_path}/out.job/1/job.sbatch" in said
    started_by_hand(tmp_path / "out").join()
    assert materialized(run(tmp_path / "out", at_once, instance))["final_loss"] == 1.0
    assert "the job was not started yet" in failure(run(tmp_path / "out", at_once, instance))


def test_a_job_of_another_command_at_work_on_the_output_is_left_alone(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    exchange = JobDirectory(tmp_path / "out.job" / "1")
    exchange.folder.mkdir(parents=True)
    (exchange.folder / "order.json").write_text(json.dumps({"command": ["another"], "job_id": ""}))
    exchange.alive.write_text("0")
    over = threading.Event()

    def live() -> None:
        while not over.wait(0.2):
            exchange.alive.write_text(str(time.monotonic()))

    alive = threading.Thread(target=live)
    alive.start()
    try:
        said = failure(run(tmp_path / "out", SLURM, instance))
    finally:
        over.set()
        alive.join()
    assert "another job writes to" in said
    assert str(exchange.stop) in said


def test_a_sign_of_life_that_is_late_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange, clock = JobDirectory(tmp_path), [0.0]
    exchange.alive.write_text("1")

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        if clock[0] > 20:
            exchange.alive.write_text("2")

    monkeypatch.setattr(
        "darkroom.assets.launching.order.time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep)
    )
    assert _is_alive(exchange)
    assert 20 < clock[0] < 21


def test_a_sign_of_life_that_is_being_written_is_the_last_one(tmp_path: Path) -> None:
    exchange = JobDirectory(tmp_path)
    job = HandedOverJob(exchange, start_with="sbatch job", wait_hours=0.0)
    exchange.alive.write_text("1")
    assert job.ended(closed=False) is None
    exchange.alive.write_text("")
    assert job.ended(closed=False) is None


def test_a_job_that_starts_when_another_one_has_its_place_ends_and_is_not_heard(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    at_once = LauncherResource(kind="slurm", wait_hours=0.0, folder=str(ROOT))
    for words in ("another", "dataset"), ():
        assert "the job was not started yet" in failure(run(tmp_path / "out", at_once, instance, *words))
    late, wanted = (tmp_path / "out.job" / number / "job.sbatch" for number in ("1", "2"))
    assert subprocess.run(["bash", str(late)], check=False, capture_output=True, timeout=300).returncode == 128 + 15
    assert "the job was not started yet" in failure(run(tmp_path / "out", at_once, instance))
    subprocess.run(["bash", str(wanted)], check=True, capture_output=True)
    assert materialized(run(tmp_path / "out", at_once, instance))["final_loss"] == 1.0


def test_where_no_ray_cluster_answers_that_is_said(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    launcher = LauncherResource(kind="ray", url="http://127.0.0.1:9")
    assert "DARKROOM_LAUNCH_URL" in failure(run(tmp_path / "out", launcher, instance))
