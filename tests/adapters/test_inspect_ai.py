"""inspect-ai, unchanged, uses the sandbox's tools over MCP, where its model reads the texts and the very pixels, and
reads the log of an evaluation."""

from __future__ import annotations

import base64
import io
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx
import numpy as np
import pytest
from PIL import Image

from darkroom.train.evaluation.exports import export
from darkroom.train.evaluation.settings import ExportFormat
from tests.adapters.conftest import Install
from tests.image_files import encoded
from tests.json_endpoint import JsonHandler, endpoint
from tests.served import served
from tests.train.evaluation.conftest import TARGET, desert, exported

VERSION = "0.3.285"
PROGRAM = """
import sys
from inspect_ai import Task, eval as run
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import mcp_server_http

tools = [mcp_server_http(name="sandbox", url=sys.argv[1])]
task = Task(dataset=[Sample(input="What does the sign say?")], solver=[use_tools(tools), generate()])
log = run(task, model="openai-api/scripted/model", display="none", log_dir="logs")[0]
assert log.status == "success", log.error.message
print(log.samples[0].output.completion)
"""
READ = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

path = sys.argv[1]
log = read_eval_log(path, resolve_attachments=True)
print(json.dumps({
    "status": log.status,
    "accuracy": {score.name: score.metrics["bench"].value for score in log.results.scores},
    "values": [{name: score.value for name, score in (sample.scores or {}).items()} for sample in log.samples],
    "errors": [sample.error and sample.error.message for sample in log.samples],
    "roles": [message.role for message in log.samples[0].messages],
    "image": log.samples[0].messages[2].content[0].image,
    "completion": read_eval_log_sample(path, id="bench:b", epoch=1).output.completion,
    "summaries": [summary.id for summary in read_eval_log_sample_summaries(path)],
}))
"""
CALLS = [
    ("crop_image", {"bbox_2d": [0.25, 0.5, 0.75, 1.0]}),
    ("run_code", {"code": "kept = 6 * 7"}),
    ("run_code", {"code": "print(kept)\n1 / 0"}),
]


class Model(JsonHandler):
    """Calls the tools in turn; ``asked`` is what it was sent last."""

    asked: ClassVar[dict[str, Any]] = {}

    def answer(self, body: dict[str, Any]) -> Any:
        Model.asked = body
        n_answered = sum(message["role"] == "tool" for message in body["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": "done"}
        if n_answered < len(CALLS):
            name, arguments = CALLS[n_answered]
            function = {"name": name, "arguments": json.dumps(arguments)}
            message["tool_calls"] = [{"id": f"call_{n_answered}", "type": "function", "function": function}]
        reason = "tool_calls" if "tool_calls" in message else "stop"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "x", "object": "chat.completion", "created": 1, "model": "model", "usage": usage}
        return {**head, "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


@pytest.fixture
def model() -> Iterator[str]:
    with endpoint(Model) as url:
        yield url


@pytest.fixture
def address() -> Iterator[str]:
    with served("sandbox", "serve") as (_, address):
        yield address


def test_its_model_reads_what_the_sandbox_shows(install: Install, address: str, model: str, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    task = {"images": [base64.b64encode(encoded(Image.fromarray(pixels))).decode()], "protocol": "tool_call"}
    path = httpx.post(f"{address}/sessions", json=task, timeout=60).raise_for_status().json()["mcp"]
    python = install(f"inspect-ai-{VERSION}", f"inspect-ai=={VERSION}", "mcp>=2.3,<3", "openai", torch=False)
    command = [python, "-c", PROGRAM, f"{address}{path}"]
    endpoint = {"SCRIPTED_BASE_URL": model, "SCRIPTED_API_KEY": "none", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=endpoint, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split()[-1] == "done"
    messages = Model.asked["messages"]
    (url,) = re.findall(r'"(data:image/png;base64,[^"]+)"', json.dumps(messages))
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))
    assert np.array_equal(shown, pixels[30:, 20:60])
    read = [json.dumps(message["content"]) for message in messages if message["role"] == "tool"]
    assert len(read) == len(CALLS)
    assert "image 2: 40x30 pixels" in read[0]
    assert "42" in read[2]
    assert "ZeroDivisionError" in read[2]


def test_it_reads_the_log_of_an_evaluation(install: Install, tmp_path: Path) -> None:
    folder, store = exported(tmp_path)
    export(folder, [ExportFormat.INSPECT], store)
    python = install(f"inspect-ai-{VERSION}", f"inspect-ai=={VERSION}", "mcp>=2.3,<3", "openai", torch=False)
    command, home = [python, "-c", READ, folder / "rollouts.eval"], {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=home, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    read = json.loads(done.stdout)
    image = read.pop("image")
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(image.partition(",")[2]))))
    assert np.array_equal(pixels, np.asarray(desert().crop(TARGET)))
    assert read == {
        "status": "error",
        "accuracy": {"right": 0.5, "score": 0.5},
        "values": [{"right": "C", "score": 1.0}, {"right": "I", "score": 0.0}, {}],
        "errors": [None, None, "policy_failed: why"],
        "roles": ["user", "assistant", "tool", "assistant"],
        "completion": "=1+1",
        "summaries": ["bench:a", "bench:b", "bench:c"],
    }
