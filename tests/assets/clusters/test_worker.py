"""A run whose process is gone is noticed, by run monitoring and by the next command; no other run is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.clusters.worker import WORKER_TAG, LocalRunLauncher, is_abandoned, worker_tags
from darkroom.assets.dagster_home.instance import close_abandoned_runs
from darkroom.assets.graph.resources import WorkspaceResource

RUN = "00000000-0000-4000-8000-000000000001"
OTHER = "00000000-0000-4000-8000-000000000002"


def started(tags: dict[str, str], run_id: str = RUN) -> dg.DagsterRun:
    return dg.DagsterRun("job", run_id=run_id, status=dg.DagsterRunStatus.STARTED, tags=tags)


@pytest.fixture(scope="module")
def of_the_dead() -> dict[str, str]:
    """The tags that a process wrote which has ended."""
    code = f"from darkroom.assets.clusters.worker import worker_tags; print(worker_tags({RUN!r})[{WORKER_TAG!r}])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {WORKER_TAG: said.stdout.strip()}


def test_a_run_is_abandoned_when_its_process_has_ended(of_the_dead: dict[str, str]) -> None:
    assert is_abandoned(started(of_the_dead))
    assert not is_abandoned(started(worker_tags(RUN)))
    assert not is_abandoned(started({}))


def test_a_process_number_that_was_given_to_another_process_is_another_process() -> None:
    own = worker_tags(RUN)[WORKER_TAG]
    assert is_abandoned(started({WORKER_TAG: f"{own}1"}))


def test_nothing_is_said_of_a_process_on_another_machine(of_the_dead: dict[str, str]) -> None:
    run_id, _, rest = of_the_dead[WORKER_TAG].split("/", 2)
    assert not is_abandoned(started({WORKER_TAG: f"{run_id}/elsewhere/{rest}"}))


def test_a_retry_does_not_inherit_the_process_of_the_run_that_it_repeats(of_the_dead: dict[str, str]) -> None:
    assert not is_abandoned(started(of_the_dead, OTHER))


def test_run_monitoring_is_told(of_the_dead: dict[str, str]) -> None:
    launcher = LocalRunLauncher()
    assert launcher.supports_check_run_worker_health
    assert launcher.check_run_worker_health(started(of_the_dead)).status.value == "FAILED"
    assert launcher.check_run_worker_health(started(worker_tags(RUN))).status.value == "RUNNING"


def test_a_command_closes_the_runs_of_processes_that_are_gone(
    instance: dg.DagsterInstance, of_the_dead: dict[str, str]
) -> None:
    instance.add_run(started(of_the_dead))
    instance.add_run(started(worker_tags(OTHER), OTHER))
    assert close_abandoned_runs(instance) == 1
    statuses = [run.status for run in (instance.get_run_by_id(RUN), instance.get_run_by_id(OTHER)) if run]
    assert statuses == [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.STARTED]


def test_every_run_says_which_process_works_on_it(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    @dg.asset
    def any_asset(workspace: WorkspaceResource) -> None: ...

    result = dg.materialize([any_asset], instance=instance, resources={"workspace": WorkspaceResource()})
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.tags[WORKER_TAG] == worker_tags(result.run_id)[WORKER_TAG]
