"""verifiers' own `vf-eval` plays the rows of `darkroom environment serve` as GRPO does here; its model is scripted."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from PIL import Image

from darkroom.adapters import FOLDER
from darkroom.train.tiny import build
from tests.adapters.conftest import Install
from tests.adapters.rollouts import Script, digest, grpo, marker, scripts, write_rows
from tests.json_endpoint import JsonHandler, endpoint
from tests.served import served

VERSION = "0.4.0"
N_ROWS = 4
"""Of the rows: verifiers runs a program for every turn. They have an image, two images and none."""


class Model(JsonHandler):
    """Writes the turns of ``script``, by the marker of the row's question."""

    script: ClassVar[Script] = {}

    def answer(self, body: dict[str, Any]) -> Any:
        asked = "".join(part.get("text", "") for part in body["messages"][1]["content"])
        turns = next(turns for mark, turns in Model.script.items() if mark in asked)
        text = turns[sum(message["role"] == "assistant" for message in body["messages"])]
        head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "model"}
        said = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return [{**head, "choices": [said]}, {**head, "choices": [end], "usage": usage}]

    def reply(self, value: Any) -> None:
        """A stream, which is what verifiers asks for."""
        data = "".join(f"data: {chunk}\n\n" for chunk in [*map(json.dumps, value), "[DONE]"]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def model() -> Iterator[str]:
    with endpoint(Model) as url:
        yield url


def test_its_rewards_and_images_are_those_of_grpo_here(install: Install, model: str, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "prompts")
    build(tmp_path / "model", texts=(row.sample.question for row in rows))
    python = install(f"verifiers-{VERSION}", f"verifiers=={VERSION}", torch=False)
    home = {**os.environ, "DARKROOM_HOME": str(tmp_path / "home")}
    with served("environment", "serve", str(tmp_path / "prompts"), "--method", "thyme", env=home) as (_, address):
        paths = f"{Path(sys.executable).parent}:{python.parent}:{os.environ['PATH']}"  # the chat program is run by uv
        own = {"PATH": paths, "PYTHONPATH": str(FOLDER), "DARKROOM_ENVIRONMENT_URL": address, "SCRIPTED_KEY": "none"}
        for number, script in enumerate(scripts(rows)[:2]):
            Model.script = {marker(row): script[row.sample.sample_id] for row in rows}
            out = tmp_path / f"run{number}"
            command = [python.with_name("vf-eval"), "darkroom_verifiers", "--model", "model", "--no-push", "--no-rich"]
            client = ["--client.base-url", model, "--client.api-key-var", "SCRIPTED_KEY"]
            run = [*command, *client, "--output-dir", out, "--run.name", "run", "-n", str(N_ROWS)]
            about = {**os.environ, **own}
            done = subprocess.run(run, env=about, capture_output=True, text=True, timeout=1800, check=False)
            assert done.returncode == 0, done.stderr[-4000:]
            played = _played(out / "run" / "traces.jsonl")
            expected = grpo(tmp_path / "prompts", tmp_path / "model", script, max_rounds=2)
            assert len(played) == N_ROWS
            for name, (sampled, images, reward, correct) in played.items():
                rollout = expected[name]
                assert reward == pytest.approx(rollout.reward)
                assert correct == rollout.correct
                assert images == rollout.images
                assert sampled == script[name][: len(sampled)]
                assert len(sampled) == sum(b > a for a, b in zip([0, *rollout.mask], rollout.mask, strict=False))


def _played(traces: Path) -> dict[str, tuple[list[str], list[str], float, float]]:
    """Of every trace: the sampled texts, the digests of its images, reward and correctness."""
    played = {}
    for line in traces.read_text().splitlines():
        (trace,) = json.loads(line)["traces"]
        assert not trace["errors"], trace["errors"]
        sampled = [node["message"]["content"] for node in trace["nodes"] if node["sampled"]]
        urls = [
            part["image_url"]["url"]
            for node in trace["nodes"]
            if isinstance(node["message"]["content"], list)
            for part in node["message"]["content"]
            if part["type"] == "image_url"
        ]
        files = (io.BytesIO(base64.b64decode(url.partition(",")[2])) for url in urls)
        images = [digest(Image.open(file)) for file in files]
        reward = trace["rewards"]["reward"]["score"]
        played[trace["task"]["data"]["row"]] = (sampled, images, reward, trace["metrics"]["correct"])
    return played
