"""A run that is cancelled, or killed, leaves nothing behind: no program, no process of accelerate, no sandbox."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest

from tests.matrices import first_quickly
from tests.ports import free_port
from tests.waiting import answers, wait_until

SECONDS = 120.0
"""Within which everything must be gone; the program itself may take ten to end in order, on an idle machine."""


@pytest.fixture
def environment(clean_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "home" / "dagster"
    folder.mkdir(parents=True)
    dg.DagsterInstance.from_config(str(folder)).dispose()  # the tables: run and test must not create them at once
    return clean_environment


def descendants(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def names(processes: list[psutil.Process]) -> list[str]:
    return [f"{process.pid} {command_line(process)[:150]}" for process in processes if process.is_running()]


def command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):  # a helper of the start-up, which has ended meanwhile
        return ""


def observed(home: Path, asset: str) -> bool:
    """Whether a step has reached Dagster, so that the program is at work."""
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        return bool(instance.fetch_observations(dg.AssetKey(asset), limit=1).records)


def all_gone(processes: list[psutil.Process]) -> None:
    _, left = psutil.wait_procs(processes, timeout=SECONDS)
    assert not [process for process in left if is_at_work(process)], names(left)


def is_at_work(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def started(command: list[str], root: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("n_processes", first_quickly([1, 2]), ids=["alone", "accelerate"])
@pytest.mark.parametrize("number", first_quickly([signal.SIGINT, signal.SIGKILL]), ids=["cancelled", "killed"])
def test_a_run_that_ends_takes_the_program_and_its_sandboxes_with_it(
    root: Path, environment: dict[str, str], tmp_path: Path, n_processes: int, number: signal.Signals
) -> None:
    """SIGINT is what Dagster sends a run worker whose run is cancelled."""
    command = [sys.executable, "-m", "tests.e2e.hungry_run"]
    settings = {**environment, "DARKROOM_LAUNCH_PROCESSES": str(n_processes)}
    with started(command, root, settings) as worker:
        wait_until(lambda: worker.poll() is not None or observed(tmp_path / "home", "hungry"))
        assert worker.poll() is None, "the run ended by itself"
        processes = descendants(worker.pid)
        assert any("sandbox" in command_line(process) for process in processes)
        assert n_processes == 1 or any("accelerate" in command_line(process) for process in processes)
        worker.send_signal(number)
        all_gone([*processes, psutil.Process(worker.pid)])


def test_a_training_that_is_terminated_in_the_ui_ends(
    root: Path, environment: dict[str, str], tmp_path: Path, crop_home: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(crop_home, home, dirs_exist_ok=True)
    port = free_port()
    command = [str(Path(sys.executable).with_name("dg")), "dev", "--host", "127.0.0.1", "--port", str(port)]
    with started(command, root, environment) as ui:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/server_info"))
        ops = {"sft_checkpoint": {"config": {"epochs": 100_000.0}}}
        run = launch(port, "train", [["base_model"], ["sft_checkpoint"]], ops)
        wait_until(lambda: observed(home, "sft_checkpoint"))
        processes = [one for one in descendants(ui.pid) if "darkroom.train." in command_line(one)]
        assert processes
        ask(port, "mutation($id: String!) { terminateRun(runId: $id) { __typename } }", id=run)
        all_gone(processes)
        status = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
        wait_until(lambda: ask(port, status, id=run)["runOrError"]["status"] == "CANCELED")
        os.killpg(ui.pid, signal.SIGKILL)


def ask(port: int, query: str, **variables: Any) -> Any:
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql", body, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        said = json.load(answer)
    assert "errors" not in said, said
    return said["data"]


def launch(port: int, job: str, assets: list[list[str]], ops: dict[str, Any], **tags: str) -> str:
    """The id of a run of these assets, as the launchpad starts it."""
    location = ask(port, "{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } } } }")
    (repository,) = location["repositoriesOrError"]["nodes"]
    selector = {
        "repositoryName": repository["name"],
        "repositoryLocationName": repository["location"]["name"],
        "pipelineName": job,
        "assetSelection": [{"path": path} for path in assets],
    }
    metadata = {"tags": [{"key": f"dagster/{name}", "value": value} for name, value in tags.items()]}
    mutation = """mutation($parameters: ExecutionParams!) { launchRun(executionParams: $parameters) {
        __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
        ... on RunConfigValidationInvalid { errors { message } } } }"""
    parameters = {"selector": selector, "runConfigData": {"ops": ops}, "executionMetadata": metadata}
    found = ask(port, mutation, parameters=parameters)["launchRun"]
    assert found["__typename"] == "LaunchRunSuccess", found
    return str(found["run"]["runId"])
