"""`train grpo --report-to trackio`: rollouts with their images lie in trackio's own store, beside the figures."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.storage.images import ImageStore
from darkroom.train.tiny import build, dataset_texts
from tests.adapters.conftest import ROOT
from tests.train.conftest import sign

PACKAGES = ("trackio==0.43.0", "gradio-client==2.7.2", "brotli==1.2.1", "orjson==3.13.0")
"""With what trackio requires and the lock does not have. It wants Pillow below 13 and runs with the lock's."""
STEPS = 2


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """trackio's folder after a training."""
    folder = tmp_path_factory.mktemp("trackio")
    uv, overlay = Path(sys.executable).with_name("uv"), folder / "packages"
    subprocess.run([uv, "pip", "install", "--quiet", "--no-deps", "--target", overlay, *PACKAGES], check=True)
    images = ImageStore(str(folder / "images"))
    write_trajectories(folder / "rows", [sign(images, 0)], store=images)
    build(folder / "tiny", texts=dataset_texts(folder / "rows"))
    command = [sys.executable, "-m", "tests.adapters.trackio_program", "--report-to", "trackio"]
    command += ["--dataset", str(folder / "rows"), "--model", str(folder / "tiny"), "--output", str(folder / "grpo")]
    command += ["--max-steps", str(STEPS), "--max-tokens", "600", "--generations", "4", "--repetition-penalty", "1"]
    command += ["--epochs", str(STEPS), "--set", "trainer.project=signs", "--set", "trainer.run_name=first"]
    own = {"DARKROOM_HOME": str(folder), "TRACKIO_DIR": str(folder / "store"), "PYTHONPATH": f"{ROOT}:{overlay}"}
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "store"


def stored(store: Path, table: str) -> list[Mapping[str, Any]]:
    with closing(sqlite3.connect(store / "signs.db")) as connection:
        connection.row_factory = sqlite3.Row
        return list(connection.execute(f"SELECT * FROM {table} WHERE run_name = 'first' ORDER BY id"))


@pytest.fixture(scope="module")
def rollouts(store: Path) -> list[tuple[int, list[Any], dict[str, Any]]]:
    """Step, messages and metadata of each trace, in order."""
    traces = sorted(stored(store, "traces"), key=lambda trace: (trace["step"], trace["trace_index"]))
    return [(trace["step"], json.loads(trace["messages"]), json.loads(trace["metadata"])) for trace in traces]


def test_every_rollout_of_a_step_is_a_trace_with_its_reward(rollouts: list[tuple[int, list[Any], Any]]) -> None:
    assert [step for step, _, _ in rollouts] == [0] * 4 + [1] * 4
    assert [about["answer"] for _, _, about in rollouts[:4]] == ["red", "red", "red", "blue"]
    assert rollouts[0][2]["reward"] > rollouts[3][2]["reward"]
    assert rollouts[0][2]["gold"] == "red"
    assert set(rollouts[0][2]["parts"]) >= {"result", "format"}


def test_code_is_a_call_of_the_tool_and_its_images_are_in_the_store(store: Path, rollouts: list[Any]) -> None:
    _, (question, call, result, answer), _ = rollouts[0]
    assert [message["role"] for message in (question, call, result, answer)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert "crop" in call["tool_calls"][0]["function"]["arguments"]
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]
    sizes = []
    for message in (question, result):
        (image,) = [part for part in message["content"] if part.get("_type") == "trackio.image"]
        with Image.open(store / "media" / image["file_path"]) as opened:
            sizes.append(opened.size)
    assert sizes[0] != sizes[1], "the question's image, and the crop of it"


def test_the_figures_of_a_step_are_beside_them(store: Path) -> None:
    figures = [json.loads(row["metrics"]) for row in stored(store, "metrics")]
    assert [each["train/global_step"] for each in figures if "train/reward" in each] == [1, 2]
