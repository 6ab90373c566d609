"""The command `darkroom serve`: what it prints where, how it exits. The vLLM behind it is the stand-in."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from darkroom.pipelines.command_line.errors import program_of
from darkroom.pipelines.models.serving.cli import serve
from darkroom.pipelines.processes.process_sessions import ProcessMark
from darkroom.pipelines.processes.virtual_environment import VirtualEnvironment
from darkroom.pipelines.storage.workspace import Workspace
from tests.matrices import first_quickly
from tests.pipelines.models.serving.conftest import MODEL, put_program
from tests.waiting import wait_until

runner = CliRunner()
app = program_of(serve)
PROGRAM = """
from darkroom.pipelines.models.serving.cli import serve
from darkroom.pipelines.command_line.errors import program_of
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


@contextmanager
def foreground(*arguments: str, n_settings: int = 3) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A running command with the settings that it printed, once its server is ready."""
    # a shell that runs the tests in the background has its children ignore SIGINT, and they pass that on
    heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeding
    ) as starter:
        assert starter.stdout is not None
        settings = [starter.stdout.readline().strip() for _ in range(n_settings)]
        try:
            yield starter, settings
        finally:
            starter.kill()


def ended(starter: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> tuple[str, str]:
    """Its further output once it was sent a signal."""
    starter.send_signal(number)
    return starter.communicate(timeout=300)


def server_of(settings: list[str]) -> ProcessMark:
    """The process that listens on the port that was printed, which leads its session."""
    [port] = re.findall(r":(\d+)/v1", "".join(settings))
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    [leader] = [pid for pid in pids if f"--port\0{port}\0" in command_of(pid) and os.getsid(pid) == pid]
    return ProcessMark.of(leader)


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it has ended
        return ""


def test_on_a_cpu_it_serves_without_a_gpu(monkeypatch: pytest.MonkeyPatch, stand_in_cpu: VirtualEnvironment) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with foreground(MODEL.name, "--device", "cpu") as (starter, settings):
        ended(starter)
    assert settings[0] == "export DARKROOM_POLICY=openai"
    assert starter.returncode == 0


def test_a_device_is_for_vllm_only() -> None:
    said = runner.invoke(app, [MODEL.name, "--engine", "transformers", "--device", "cpu"])
    assert (said.exit_code, said.stdout) == (1, "")
    assert "--device is for vllm" in said.stderr


def test_stdout_is_the_settings_and_stderr_asks_for_a_revision_that_cannot_be_told(
    gpu: None, stand_in: VirtualEnvironment, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    with foreground(MODEL.name, "--", "--max-model-len", "4096") as (starter, settings):
        stdout, stderr = ended(starter)
    assert stdout == ""
    assert settings[0] == "export DARKROOM_POLICY=openai"
    assert re.fullmatch(r"export DARKROOM_POLICY_URL=http://127\.0\.0\.1:\d+/v1", settings[1])
    assert settings[2] == f"export DARKROOM_POLICY_MODEL={MODEL.name}"
    assert "DARKROOM_POLICY_REVISION" in stderr
    [log] = (workspace.home / "servers").glob("*.log")
    assert "'max_model_len': '4096'" in log.read_text()


def test_a_hub_model_is_known_by_the_commit_that_was_loaded(
    gpu: None, stand_in: VirtualEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    refs = tmp_path / "hub" / f"models--{MODEL.name.replace('/', '--')}" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("0c5f" * 10)
    with foreground(MODEL.name, n_settings=4) as (starter, settings):
        ended(starter)
    assert settings[-1] == f"export DARKROOM_POLICY_REVISION={'0c5f' * 10}"


@pytest.mark.parametrize("words", [["--status"], ["--stop"], [MODEL.name, "--detach"]])
def test_an_option_of_earlier_versions_says_what_to_do_instead(words: list[str]) -> None:
    result = runner.invoke(app, words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "tmux" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_log_of_a_server_that_dies_is_shown(gpu: None, stand_in: VirtualEnvironment) -> None:
    result = runner.invoke(app, [MODEL.name, "--", "--die"])
    assert result.exit_code == 1
    assert "no memory left for the KV cache" in result.stderr


@pytest.mark.parametrize("number", first_quickly([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_a_server_ends_with_its_command(number: signal.Signals, gpu: None, stand_in: VirtualEnvironment) -> None:
    with foreground(MODEL.name) as (starter, settings):
        server = server_of(settings)
        _, stderr = ended(starter, number)
    assert starter.returncode == 0, stderr
    assert "stopping" in stderr
    assert server.members() == []


@pytest.mark.e2e
def test_a_server_ends_with_its_killed_command(gpu: None, stand_in: VirtualEnvironment) -> None:
    with foreground(MODEL.name) as (starter, settings):
        server = server_of(settings)
        ended(starter, signal.SIGKILL)
    wait_until(lambda: server.members() == [])


def test_the_command_fails_when_its_server_dies_and_ends_the_workers(gpu: None, stand_in: VirtualEnvironment) -> None:
    with foreground(MODEL.name) as (starter, settings):
        server = server_of(settings)
        os.kill(server.pid, signal.SIGKILL)
        _, stderr = starter.communicate(timeout=300)
    assert starter.returncode == 1
    assert "has ended" in stderr
    assert server.members() == []
