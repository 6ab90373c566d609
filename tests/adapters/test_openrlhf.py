"""OpenRLHF's own multi-turn executor plays the rows of `darkroom environment serve` as GRPO does here.

Its engine (vLLM) is scripted, and its trainer is not run: both want a GPU.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from darkroom.adapters import FOLDER
from darkroom.train.tiny import build
from tests.adapters.conftest import Install
from tests.adapters.programs import run_program, write_scripts
from tests.adapters.rollouts import crashes, grpo, scripts, write_rows

VERSION = "0.11.2"
NEEDS_GPU = ("flash-attn", "deepspeed", "bitsandbytes", "ray", "wandb")
"""What its agents do not import."""
PROGRAM = Path(__file__).with_name("openrlhf_program.py")


def test_its_rollouts_are_those_of_grpo_here(install: Install, tmp_path: Path) -> None:
    rows, model = write_rows(tmp_path / "prompts"), tmp_path / "model"
    build(model, texts=(row.sample.question for row in rows))
    played = scripts(rows)
    asked = write_scripts(tmp_path / "scripts.json", rows, (*played, crashes(rows, times=3)))
    python = install(f"openrlhf-{VERSION}", f"openrlhf=={VERSION}", "pillow", "httpx", left_out=NEEDS_GPU)
    *batches, broken = run_program(tmp_path, python, PROGRAM, FOLDER / "darkroom_openrlhf.py", model, asked)
    assert {(rollout["reward"], rollout["broken"]) for rollout in broken.values()} == {(0.0, 1.0)}
    for script, batch in zip(played, batches, strict=True):
        expected = grpo(tmp_path / "prompts", model, script, max_rounds=2)
        assert set(batch) == set(expected) == {row.sample.sample_id for row in rows}
        for name, rollout in expected.items():
            actual = batch[name]
            assert actual["reward"] == pytest.approx(rollout.reward)
            assert (actual["correct"], actual["broken"]) == (rollout.correct, 0.0)
            assert actual["images"] == rollout.images
            assert actual["n_features"] == len(rollout.images)
            assert (actual["prompt"], actual["response"], actual["mask"]) == rollout[:3]
            assert actual["logprobs"] == [-0.5 * written for written in rollout.mask]
