"""verl's own dataset and agent loop worker play exported rows through `darkroom environment serve`, as GRPO does here.

Of verl nothing but the engine (vLLM, SGLang) is scripted.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from darkroom.pipelines.publishing.layouts import PROMPT_LAYOUTS
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.train.tiny import build
from tests.adapters.conftest import Install
from tests.adapters.rollouts import crashes, grpo, marker, scripts, write_rows
from tests.served import served

VERSION = "0.9.1"
UNDECLARED = ("cachetools", "uvicorn", "fastapi")
"""What verl imports and does not require."""
STOCK = (
    ("ProcessorMixin, Qwen2_5_VLProcessor", "ProcessorMixin, Qwen2_5_VLProcessor as Stock"),
    ("(Qwen2_5_VLProcessor)", "(Stock)"),
    ("ImageOnlyProcessor", "Qwen2_5_VLProcessor"),
)
"""Gives a checkpoint's processor for machines without torchvision the stock name: verl knows processors by name."""
PROGRAM = Path(__file__).with_name("verl_program.py")


def test_its_rollouts_are_those_of_grpo_here(install: Install, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "prompts")
    build(tmp_path / "model", texts=(row.sample.question for row in rows))
    asked = find_source("rl", tmp_path, split="train", prompts=tmp_path / "prompts").in_protocol("thyme", None)
    folder = export(asked, PROMPT_LAYOUTS["verl_rl"], tmp_path / "out").folder
    played = (*scripts(rows), crashes(rows, times=3))
    marks = {row.sample.sample_id: marker(row) for row in rows}
    marked = [{name: (marks[name], turns) for name, turns in script.items()} for script in played]
    (tmp_path / "scripts.json").write_text(json.dumps(marked))
    python = install(f"verl-{VERSION}", f"verl=={VERSION}", *UNDECLARED, left_out=("wandb",))
    command = [python, PROGRAM, folder, _as_stock(tmp_path / "model"), tmp_path / "scripts.json"]
    home = {**os.environ, "DARKROOM_HOME": str(tmp_path / "home")}
    arguments = ("environment", "serve", str(tmp_path / "prompts"), "--method", "thyme")
    with served(*arguments, env=home) as (_, address):
        about = {"PYTHONPATH": str(folder), "DARKROOM_ENVIRONMENT_URL": address, "HF_HUB_OFFLINE": "1"}
        own = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **about}
        done = subprocess.run(command, env=own, cwd=tmp_path, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    batches = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"choice"')]
    *played, _ = played
    *batches, broken = batches
    for rollout in broken.values():
        assert rollout["broken"]
        assert (rollout["reward"], set(rollout["mask"])) == (0.0, {0})
    for script, batch in zip(played, batches, strict=True):
        expected = grpo(tmp_path / "prompts", tmp_path / "model", script, max_rounds=2)
        assert set(batch) == set(expected) == {row.sample.sample_id for row in rows}
        for name, rollout in expected.items():
            actual = batch[name]
            assert actual["reward"] == pytest.approx(rollout.reward)
            assert (actual["correct"], actual["broken"]) == (rollout.correct, False)
            assert actual["images"] == rollout.images
            assert actual["n_features"] == len(rollout.images)
            assert (actual["prompt"], actual["response"], actual["mask"]) == rollout[:3]
            assert actual["logprobs"] == [-0.5 * written for written in rollout.mask]


def _as_stock(model: Path) -> Path:
    folder = model.with_name("stock")
    shutil.copytree(model, folder)
    for path in (folder / "image_only.py", *folder.glob("*.json")):
        text = path.read_text()
        for old, new in STOCK:
            text = text.replace(old, new)
        path.write_text(text)
    return folder
