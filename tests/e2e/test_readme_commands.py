"""The README's commands, run as they stand there (in a data folder of their own)."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import datasets
import pytest

from tests.ports import free_port

Run = Callable[..., subprocess.CompletedProcess[str]]


def readme_line(root: Path, beginning: str) -> list[str]:
    """The words of the README's command that begins so."""
    readme = (root / "README.md").read_text()
    found = re.search(rf"^{re.escape(beginning)}.*$", readme, re.MULTILINE)
    assert found is not None, f"the README has no command {beginning!r}"
    return shlex.split(found[0], comments=True)


def test_your_own_images_become_a_dataset(run: Run, root: Path, photos: Path, clean_environment) -> None:
    clean_environment.pop("DAGSTER_HOME")
    ingest = [word.replace("photos", str(photos), 1) for word in readme_line(root, ".venv/bin/darkroom ingest")]
    said = run(*ingest).stdout
    assert "6 rows: 5 samples, 1 rejects" in said
    run(*readme_line(root, ".venv/bin/darkroom materialize photos"))
    shipped = Path(clean_environment["DARKROOM_HOME"]) / "datasets" / "sft" / "crop"
    assert len(datasets.load_dataset(str(shipped), split="train")) == 4
    assert "4 trajectories" in run(".venv/bin/darkroom", "gallery", "crop").stdout
    assert "0 findings" in run(*readme_line(root, ".venv/bin/darkroom audit crop")).stdout


@pytest.mark.parametrize(
    "beginning",
    [
        ".venv/bin/darkroom train sft --help",
        ".venv/bin/darkroom train grpo --help",
        ".venv/bin/darkroom evaluate --help",
        ".venv/bin/darkroom sandbox doctor",
        ".venv/bin/darkroom sandbox serve --help",
        "make help",
    ],
)
def test_a_command_that_shows_something(run: Run, root: Path, beginning: str) -> None:
    assert len(run(*readme_line(root, beginning)).stdout.splitlines()) > 5


def test_make_summary_names_what_fills_an_empty_home(run: Run, root: Path) -> None:
    assert "Run: darkroom demo" in run(*readme_line(root, "make summary")).stdout


def test_make_ui_serves_the_graph(root: Path, clean_environment: dict[str, str]) -> None:
    port = free_port()
    process = subprocess.Popen(
        [*readme_line(root, "make ui"), f"PORT={port}"],
        cwd=root,
        env=clean_environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        names = asset_names(f"http://127.0.0.1:{port}/graphql", process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert {"samples", "crop/trajectories", "sft_dataset", "grpo_checkpoint"} <= names


def asset_names(url: str, process: subprocess.Popen[bytes]) -> set[str]:
    query = json.dumps({"query": "{ assetNodes { assetKey { path } } }"}).encode()
    request = urllib.request.Request(url, query, {"Content-Type": "application/json"})
    deadline = time.monotonic() + 600
    while True:
        assert process.poll() is None, "`make ui` ended"
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                nodes = json.load(answer)["data"]["assetNodes"]
            if nodes:
                return {"/".join(node["assetKey"]["path"]) for node in nodes}
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass  # not up yet; the deadline speaks
        assert time.monotonic() < deadline, "the UI did not come up in 600 s"
        time.sleep(1)
