"""inspect-ai, unchanged, uses the sandbox's tools over MCP, where its model reads the texts and the very pixels."""

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

from tests.adapters.conftest import Install
from tests.image_files import encoded
from tests.json_endpoint import JsonHandler, endpoint
from tests.served import served

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
