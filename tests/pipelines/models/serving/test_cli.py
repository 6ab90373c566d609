"""The command `darkroom serve`: what it prints where, how it exits. The vLLM behind it is the stand-in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from darkroom.pipelines.models.serving import ServerRegistry, VirtualEnvironment, start
from darkroom.pipelines.models.serving.cli import serve
from darkroom.pipelines.storage.command_errors import program_of
from tests.pipelines.models.serving.conftest import MODEL, put_program

runner = CliRunner()
app = program_of(serve)
PROGRAM = """
from darkroom.pipelines.models.serving.cli import serve
from darkroom.pipelines.storage.command_errors import program_of
program_of(serve)()
"""
COMMAND = (sys.executable, "-c", PROGRAM)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in for nvidia-smi that lists a GPU."""
    put_program(tmp_path / "bin" / "nvidia-smi", "#!/bin/sh\necho 'GPU 0: stand-in (UUID: GPU-0)'\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_without_a_gpu_it_ends_with_one_paragraph_and_status_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    said = runner.invoke(app, [MODEL.name])
    assert said.exit_code == 1
    assert said.stdout == ""
    assert "needs an NVIDIA GPU" in said.stderr
    assert not (tmp_path / "home" / "environments").exists()


def test_on_a_cpu_it_serves_without_a_gpu(
    monkeypatch: pytest.MonkeyPatch, stand_in_cpu: VirtualEnvironment, servers: ServerRegistry
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    said = runner.invoke(app, [MODEL.name, "--device", "cpu", "--detach"])
    assert said.exit_code == 0, said.stderr
    assert "export DARKROOM_POLICY=openai" in said.stdout
    assert runner.invoke(app, [MODEL.name, "--device", "cpu", "--detach"]).stdout == said.stdout


def test_a_device_is_for_vllm_only() -> None:
    said = runner.invoke(app, [MODEL.name, "--engine", "transformers", "--device", "cpu"])
    assert (said.exit_code, said.stdout) == (1, "")
    assert "--device is for vllm" in said.stderr


def test_stdout_is_the_settings_and_nothing_else(
    gpu: None, stand_in: VirtualEnvironment, servers: ServerRegistry
) -> None:
    said = runner.invoke(app, [MODEL.name, "--detach", "--", "--max-model-len", "4096"])
    assert said.exit_code == 0, said.stderr
    (server,) = servers.all()
    assert said.stdout.splitlines() == [
        "export DARKROOM_POLICY=openai",
        f"export DARKROOM_POLICY_URL=http://127.0.0.1:{server.port}/v1",
        f"export DARKROOM_POLICY_MODEL={MODEL.name}",
    ]
    assert server.options[-2:] == ("--max-model-len", "4096")
    assert "'max_model_len': '4096'" in Path(server.log).read_text()


def test_a_hub_model_is_known_by_the_commit_that_was_loaded(
    gpu: None, stand_in: VirtualEnvironment, servers: ServerRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    refs = tmp_path / "hub" / f"models--{MODEL.name.replace('/', '--')}" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("0c5f" * 10)
    said = runner.invoke(app, [MODEL.name, "--detach"])
    assert said.stdout.splitlines()[-1] == f"export DARKROOM_POLICY_REVISION={'0c5f' * 10}"
    again = runner.invoke(app, [MODEL.name, "--detach"])
    assert (again.exit_code, again.stdout) == (0, said.stdout)
    assert runner.invoke(app, [MODEL.name, "--stop"]).exit_code == 0
    assert servers.all() == []


def test_a_revision_that_cannot_be_told_is_asked_for(
    gpu: None, stand_in: VirtualEnvironment, servers: ServerRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "none"))
    said = runner.invoke(app, [MODEL.name, "--detach"])
    assert "DARKROOM_POLICY_REVISION" in said.stderr
    assert "REVISION" not in said.stdout


def test_status_exits_with_0_while_it_is_ready_and_with_1_once_it_is_gone(
    gpu: None, stand_in: VirtualEnvironment, servers: ServerRegistry
) -> None:
    runner.invoke(app, [MODEL.name, "--detach"])
    ready = runner.invoke(app, ["--status"])
    assert ready.exit_code == 0
    assert " ready " in ready.stdout
    (server,) = servers.all()
    os.kill(server.process.pid, signal.SIGKILL)
    while server.process.is_running:
        time.sleep(0.02)
    gone = runner.invoke(app, [MODEL.name, "--status"])
    assert gone.exit_code == 1
    assert " gone " in gone.stdout


def test_stop_without_a_model_stops_all(engine, servers: ServerRegistry) -> None:
    server = start(servers, MODEL, engine()).server
    said = runner.invoke(app, ["--stop"])
    assert said.exit_code == 0
    assert f"{MODEL.name}: stopped" in said.stderr
    assert server.process.members() == []


def test_without_servers_status_and_stop_say_so() -> None:
    for action in ("--status", "--stop"):
        said = runner.invoke(app, [action])
        assert (said.exit_code, "no servers" in said.output) == (0, True)


def test_a_model_that_is_not_served_has_no_status_and_cannot_be_stopped() -> None:
    for action in ("--status", "--stop"):
        said = runner.invoke(app, ["never/started", action])
        assert said.exit_code == 1
        assert "no server of never/started" in said.stderr


def test_a_server_that_dies_is_forgotten_and_its_log_is_shown(
    gpu: None, stand_in: VirtualEnvironment, servers: ServerRegistry
) -> None:
    said = runner.invoke(app, [MODEL.name, "--detach", "--", "--die"])
    assert said.exit_code == 1
    assert "no memory left for the KV cache" in said.stderr
    assert servers.all() == []


@contextmanager
def foreground() -> Iterator[subprocess.Popen[bytes]]:
    """A starter in the foreground, once its server is ready."""
    command = [*COMMAND, MODEL.name]
    # a shell that runs the tests in the background has its children ignore SIGINT, and they pass that on
    heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heeding) as starter:
        assert starter.stdout is not None
        for _ in range(3):
            starter.stdout.readline()
        yield starter
        starter.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_server_in_the_foreground_ends_with_its_starter(
    number: signal.Signals, gpu: None, stand_in: VirtualEnvironment, servers: ServerRegistry
) -> None:
    with foreground() as starter:
        (server,) = servers.all()
        starter.send_signal(number)
        _, said = starter.communicate(timeout=300)
    assert starter.returncode == 0, said
    assert b"stopping" in said
    assert server.process.members() == []
    assert servers.all() == []


def test_a_starter_in_the_foreground_ends_well_when_its_server_is_stopped_elsewhere(
    gpu: None, stand_in: VirtualEnvironment, servers: ServerRegistry
) -> None:
    with foreground() as starter:
        runner.invoke(app, [MODEL.name, "--stop"])
        _, said = starter.communicate(timeout=300)
    assert starter.returncode == 0, said


def test_a_starter_in_the_foreground_fails_when_its_server_dies_and_ends_the_workers(
    gpu: None, stand_in: VirtualEnvironment, servers: ServerRegistry
) -> None:
    with foreground() as starter:
        (server,) = servers.all()
        os.kill(server.process.pid, signal.SIGKILL)
        _, said = starter.communicate(timeout=300)
    assert starter.returncode == 1
    assert b"has ended" in said
    assert server.process.members() == []
    assert servers.all() == []
