"""`darkroom serve` with a real model server: `transformers serve` on the CPU with a tiny model built on the spot."""

from __future__ import annotations

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

from tests.waiting import wait_until

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
    command: list[str], root: Path, clean_environment: dict[str, str], tmp_path: Path
) -> Iterator[subprocess.Popen[str]]:
    with (
        (tmp_path / "starter.log").open("w") as log,
        subprocess.Popen(
            command, cwd=root, env=clean_environment, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        yield process
        process.kill()


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


def test_a_model_is_served_until_its_command_ends_even_by_a_kill(starter: subprocess.Popen[str], model: str) -> None:
    settings = exported(starter)
    assert settings["DARKROOM_POLICY_MODEL"] == model
    assert completion(settings)
    port = int(settings["DARKROOM_POLICY_URL"].split(":")[2].removesuffix("/v1"))

    os.kill(starter.pid, signal.SIGKILL)
    starter.wait()
    wait_until(lambda: not listens(port))


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_folder_without_weights_fails_with_the_end_of_the_log(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text('{"model_type": "qwen2_5_vl"}')
    said = run("darkroom", "serve", str(tmp_path / "empty"), "--engine", "transformers", check=False)
    assert said.returncode == 1
    assert "died" in said.stderr
    assert "The end of" in said.stderr


@pytest.mark.soak
def test_a_pilot_writes_a_page_about_a_real_server(
    starter: subprocess.Popen[str], root: Path, clean_environment: dict[str, str], tmp_path: Path
) -> None:
    served = exported(starter)
    settings = served | {"DARKROOM_POLICY_MAX_TOKENS": "16", "DARKROOM_POLICY_SEND_STOP": "false"}
    settings |= {name.replace("POLICY", "JUDGE"): value for name, value in settings.items()}
    settings |= {"DARKROOM_HOME": str(tmp_path / "home"), "OPENAI_API_KEY": "none"}
    command = [sys.executable, root / "examples" / "pilot.py", "demo", "1", tmp_path / "pilot.md"]
    done = subprocess.run(command, cwd=root, env=clean_environment | settings, capture_output=True, text=True)
    page = (tmp_path / "pilot.md").read_text()
    assert done.returncode == 0, page
    assert "## darkroom policy check policy" in page
    assert "## darkroom policy check judge" in page
    yields = re.findall(r"^(\w+): 1 tried, (\d) accepted, .* tokens, ", page, re.MULTILINE)
    assert {n for _, n in yields} == {"0"}, "a random model writes nothing that passes"
    assert (tmp_path / "home" / "views" / "demo.preview.html").exists()
