"""`darkroom agent serve` for a client of OpenAI's own package, 128 questions at once, and after a kill; `environment
serve` by its command."""

from __future__ import annotations

import asyncio
import base64
import io
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import httpx
import openai
import pytest
from PIL import ImageDraw

from pipelines.publishing.parquet_shards import write_prompts
from pipelines.storage.images import ImageStore
from tests.train.evaluation.conftest import TARGET, desert
from tests.train.evaluation.test_endpoint import COLOURS, Handler, row

N_CALLS: list[int] = []


class CountingHandler(Handler):
    def do_POST(self) -> None:
        N_CALLS.append(1)
        super().do_POST()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A model that crops the sign and says its colour."""
    with ThreadingHTTPServer(("127.0.0.1", 0), CountingHandler) as server:
        server.request_queue_size = 256
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.fixture
def start(root: Path, clean_environment: dict[str, str], url: str) -> Iterator[Callable[..., str]]:
    running: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> str:
        for process in running:
            process.kill()
            process.wait()
        arguments = arguments or ("agent", "serve", "--url", url, "--model", "model")
        command = ["darkroom", *arguments, "--port", "0"]
        process = subprocess.Popen(command, cwd=root, env=clean_environment, stderr=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"http://[\d.:]+(?:/v1)?", line)
        assert address, line + process.stderr.read()
        return address[0]

    yield begin
    for process in running:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def messages(seed: int, colour: str) -> list[dict]:
    image, file = desert(seed), io.BytesIO()
    ImageDraw.Draw(image).rectangle(TARGET, fill=COLOURS[colour])
    image.save(file, "PNG")
    shown = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    parts = [{"type": "text", "text": "Which colour?"}, {"type": "image_url", "image_url": {"url": shown}}]
    return [{"role": "user", "content": parts}]


def test_128_questions_at_once_are_answered_and_none_is_paid_for_again_after_a_kill(start: Callable[..., str]) -> None:
    colours = [list(COLOURS)[seed % 3] for seed in range(128)]

    async def ask_all(address: str) -> list[str]:
        async with openai.AsyncOpenAI(base_url=address, api_key="none", timeout=600, max_retries=0) as client:
            asked = (
                client.chat.completions.create(model="model", messages=messages(seed, colour), max_tokens=16)
                for seed, colour in enumerate(colours)
            )
            return [completion.choices[0].message.content for completion in await asyncio.gather(*asked)]

    assert asyncio.run(ask_all(start())) == colours
    n_calls = len(N_CALLS)
    assert n_calls == 2 * 128
    assert asyncio.run(ask_all(start())) == colours
    assert len(N_CALLS) == n_calls


def test_a_stream_of_openais_client(start: Callable[..., str]) -> None:
    with openai.OpenAI(base_url=start(), api_key="none", timeout=120) as client:
        assert client.models.list().data[0].id == "model"
        stream = client.chat.completions.create(model="model", messages=messages(0, "red"), stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "red"


def test_the_rows_of_a_dataset_are_an_environment(start: Callable[..., str], tmp_path: Path) -> None:
    store = ImageStore(str(tmp_path / "images"))
    write_prompts(tmp_path / "rows", [row(store, "red", 0)], store=store, split="train")
    address = start("environment", "serve", str(tmp_path / "rows"), "--method", "thyme")
    with httpx.Client(base_url=address, timeout=120) as http:
        assert http.get("/rows").json() == {
            "rows": 1,
            "ids": ["red"],
            "method": "thyme",
            "protocol": "thyme",
            "max_rounds": 4,
        }
        episode = http.post("/episodes", json={"row": 0}).json()["episode"]
        answer = "<think>It is red.</think>\n<answer>red</answer>"
        end = http.post(f"/episodes/{episode}/step", json={"text": answer}).json()
        assert (end["done"], end["score"]["correct"]) == (True, 1.0)
