"""A launched program: what it reports becomes the asset's, and how it fails, is late or is cancelled."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

import dagster as dg
import pytest

from darkroom.assets.clusters.programs import MAX_OBSERVATIONS, LauncherResource, LaunchError, _is_observed
from tests.assets.clusters.launches import failure, losses, materialized, run

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("n_steps", [1, 7, 100, 101, 250, 10_000])
def test_a_run_has_few_observations_and_the_first_and_last_step_among_them(n_steps: int) -> None:
    observed = [step for step in range(1, n_steps + 1) if _is_observed(step, n_steps)]
    assert len(observed) <= MAX_OBSERVATIONS + 2
    assert {1, n_steps} <= set(observed)
    assert n_steps > MAX_OBSERVATIONS or len(observed) == n_steps


def test_steps_are_observed_and_the_result_is_the_assets(instance: dg.DagsterInstance) -> None:
    result = run(LauncherResource(), instance)
    assert losses(instance) == [3.0, 1.5, 1.0]
    found = materialized(result)
    assert (found["final_loss"], found["version"]) == (1.0, "of its inputs")
    assert found["command"] == f"{sys.executable} -m tests.assets.little"
    assert found["ran_on"].startswith("this machine, process ")


def test_a_program_that_fails_says_why_in_the_runs_failure(instance: dg.DagsterInstance) -> None:
    assert failure(run(LauncherResource(), instance, "no", "dataset")) == "no dataset"


class CancelledAtOnce:
    """A program whose run is cancelled while its first line is written to the log, whose logger swallows it."""

    def __init__(self) -> None:
        self.n_asked, self.is_stopped = 0, False

    @property
    def description(self) -> str:
        self.n_asked += 1
        if self.n_asked == 1:
            with suppress(BaseException):
                signal.raise_signal(signal.SIGINT)
        return "a program"

    def has_ended(self) -> bool:
        return False

    def stop(self) -> None:
        self.is_stopped = True


def test_a_run_that_is_cancelled_as_its_program_starts_ends_the_program(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = CancelledAtOnce()
    monkeypatch.setattr("darkroom.assets.clusters.programs.ChildProcess", lambda *_: program)
    with suppress(dg.DagsterExecutionInterruptedError):
        run(LauncherResource(), instance)
    assert program.is_stopped


def test_settings_come_from_the_environment() -> None:
    environment = {"DARKROOM_LAUNCH": "local", "DARKROOM_LAUNCH_PROCESSES": "4"}
    assert LauncherResource.from_environment(environment).n_processes == 4


def test_a_setting_that_cannot_be_is_named() -> None:
    with pytest.raises(LaunchError, match="DARKROOM_LAUNCH_PROCESSES is 'many'"):
        LauncherResource.from_environment({"DARKROOM_LAUNCH_PROCESSES": "many"})


@pytest.mark.parametrize(
    ("variable", "value", "successor"),
    [
        ("DARKROOM_LAUNCH", "slurm", "DARKROOM_RUN_ON"),
        ("DARKROOM_LAUNCH_URL", "http://head:8265", "DARKROOM_RUN_ON with the cluster's address"),
        ("DARKROOM_LAUNCH_OPTIONS", "--partition=a100", "DARKROOM_RUN_OPTIONS"),
        ("DARKROOM_LAUNCH_SUBMIT", "1", "always submitted"),
        ("DARKROOM_LAUNCH_WAIT_HOURS", "0", "always submitted"),
        ("DARKROOM_LAUNCH_IMAGE", "registry/darkroom", "dagster.yaml"),
        ("DARKROOM_LAUNCH_CLAIM", "home", "dagster.yaml"),
        ("DARKROOM_LAUNCH_FOLDER", "/srv/darkroom", "the same path of Python"),
        ("DARKROOM_LAUNCH_PYTHON", "/usr/bin/python", "the same path of Python"),
    ],
)
def test_a_setting_of_an_earlier_version_is_answered_with_what_replaces_it(
    variable: str, value: str, successor: str
) -> None:
    with pytest.raises(LaunchError, match=f"^{variable} is a setting of an earlier version.*{successor}") as caught:
        LauncherResource.from_environment({variable: value})
    assert "\n" not in str(caught.value)
