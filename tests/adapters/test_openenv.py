"""OpenEnv's own client, unchanged, plays the rows of `darkroom environment serve` as GRPO does here."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from darkroom.train.tiny import build
from tests.adapters.conftest import Install
from tests.adapters.rollouts import digest, grpo, scripts, write_rows
from tests.served import served

VERSION = "0.3.0"
PROGRAM = """
import asyncio, json, sys
from openenv import GenericEnvClient

async def play(address, name, turns):
    async with GenericEnvClient(base_url=address) as client:
        results = [await client.reset(row=name, seed=3)]
        while not results[-1].done:
            results.append(await client.step({"text": turns[len(results) - 1]}))
        assert (await client.state())["step_count"] == len(results) - 1
        return {"observations": [result.observation for result in results], "reward": results[-1].reward}

async def main(address):
    for script in map(json.loads, sys.stdin):
        played = await asyncio.gather(*(play(address, *row) for row in script.items()))
        print(json.dumps(dict(zip(script, played))))

asyncio.run(main(sys.argv[1]))
"""


def test_its_observations_and_rewards_are_those_of_grpo_here(install: Install, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "prompts")
    build(tmp_path / "model", texts=(row.sample.question for row in rows))
    python = install(f"openenv-{VERSION}", f"openenv-core=={VERSION}", left_out=("gradio",), torch=False)
    home, asked = {**os.environ, "DARKROOM_HOME": str(tmp_path / "home")}, scripts(rows)
    with served("environment", "serve", str(tmp_path / "prompts"), "--method", "thyme", env=home) as (_, address):
        lines = "\n".join(map(json.dumps, asked))
        command, own = [python, "-c", PROGRAM, address], {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, input=lines, env=own, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    batches = list(map(json.loads, done.stdout.splitlines()))
    for script, played in zip(asked, batches, strict=True):
        expected = grpo(tmp_path / "prompts", tmp_path / "model", script, max_rounds=2)
        assert set(played) == set(expected) == {row.sample.sample_id for row in rows}
        for name, rollout in expected.items():
            opening, *results = played[name]["observations"]
            parts = [part for message in opening["messages"] for part in message["content"]]
            files = [part["image_url"]["url"].partition(",")[2] for part in parts if part["type"] == "image_url"]
            files += [file for result in results for file in result.get("images", ())]
            images = [digest(Image.open(io.BytesIO(base64.b64decode(file)))) for file in files]
            assert images == rollout.images
            assert played[name]["reward"] == pytest.approx(rollout.reward)
            assert results[-1]["score"]["correct"] == rollout.correct
