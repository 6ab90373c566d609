"""`darkroom serve` with a real model server: `transformers serve` on the CPU with a tiny model built on the spot."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import pytest

from darkroom.pipelines.models.serving.processes import ProcessMark

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def model(run: Run, tmp_path: Path) -> str:
    run(sys.executable, "-m", "darkroom.train.tiny", str(tmp_path / "tiny"))
    return str(tmp_path / "tiny")


@pytest.fixture
def command(model: str) -> list[str]:
    return ["darkroom", "serve", model, "--engine", "transformers", "--", "--trust-remote-code", "--default-seed", "0"]


@pytest.fixture
def starter(
    run: Run, command: list[str], root: Path, clean_environment: dict[str, str], tmp_path: Path
) -> Iterator[subprocess.Popen[str]]:
    with (
        (tmp_path / "starter.log").open("w") as log,
        subprocess.Popen(
            command, cwd=root, env=clean_environment, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        yield process
        process.kill()
    run("darkroom", "serve", "--stop")


def exported(starter: subprocess.Popen[str]) -> dict[str, str]:
    """The settings, once the server is ready."""
    assert starter.stdout is not None
    lines = [starter.stdout.readline() for _ in range(4)]
    return dict(re.findall(r"^export (\w+)=(.*)$", "".join(lines), re.MULTILINE))


def completion(settings: dict[str, str]) -> str:
    with openai.OpenAI(base_url=settings["DARKROOM_POLICY_URL"], api_key="none", timeout=120) as client:
        said = client.chat.completions.create(
            model=settings["DARKROOM_POLICY_MODEL"],
            messages=[{"role": "user", "content": "What does the sign say?"}],
            max_tokens=4,
        )
    return said.choices[0].message.content or ""


def test_a_server_outlives_its_killed_starter_and_is_stopped_with_nothing_left(
    run: Run, starter: subprocess.Popen[str], command: list[str], model: str, clean_environment: dict[str, str]
) -> None:
    settings = exported(starter)
    assert settings["DARKROOM_POLICY_MODEL"] == model
    assert completion(settings)
    records = Path(clean_environment["DARKROOM_HOME"]) / "servers"
    (record,) = records.glob("*.json")
    mark = ProcessMark(**json.loads(record.read_text())["process"])

    os.kill(starter.pid, signal.SIGKILL)
    starter.wait()
    assert " ready " in run("darkroom", "serve", model, "--status").stdout
    again = run(*command[:3], "--detach", *command[3:])
    assert settings["DARKROOM_POLICY_URL"] in again.stdout
    assert "is already being served" in again.stderr
    assert completion(settings)

    assert "stopped" in run("darkroom", "serve", model, "--stop").stderr
    assert mark.members() == []
    assert list(records.glob("*.json")) == []
    port = int(settings["DARKROOM_POLICY_URL"].split(":")[2].removesuffix("/v1"))
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_folder_without_weights_fails_with_the_end_of_the_log(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text('{"model_type": "qwen2_5_vl"}')
    said = run("darkroom", "serve", str(tmp_path / "empty"), "--engine", "transformers", "--detach", check=False)
    assert said.returncode == 1
    assert "died" in said.stderr
    assert "The end of" in said.stderr
    assert "no servers" in run("darkroom", "serve", "--status").stdout
