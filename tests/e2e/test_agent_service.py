"""`darkroom agent serve` for a client of OpenAI's own package, 128 questions at once, and after a kill; `environment
serve` by its command."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from PIL import ImageDraw

from darkroom.pipelines.storage.images import ImageStore
from tests.image_files import encoded
from tests.json_endpoint import endpoint
from tests.pipelines.publishing.shipping import write_prompts
from tests.served import served
from tests.train.evaluation.conftest import COLOURS, TARGET, desert, row
from tests.train.evaluation.test_endpoint import Handler

N_CALLS: list[int] = []


class CountingHandler(Handler):
    def answer(self, body: Any) -> Any:
        N_CALLS.append(1)
        return super().answer(body)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A model that crops the sign and says its colour."""
    with endpoint(CountingHandler) as url:
        yield url


@pytest.fixture
def agent(clean_environment: dict[str, str], url: str) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: served("agent", "serve", "--url", url, "--model", "model", env=clean_environment)


def messages(seed: int, colour: str) -> list[dict]:
    image = desert(seed)
    ImageDraw.Draw(image).rectangle(TARGET, fill=COLOURS[colour])
    shown = f"data:image/png;base64,{base64.b64encode(encoded(image)).decode()}"
    parts = [{"type": "text", "text": "Which colour?"}, {"type": "image_url", "image_url": {"url": shown}}]
    return [{"role": "user", "content": parts}]


@pytest.mark.soak
def test_128_questions_at_once_are_answered_and_none_is_paid_for_again_after_a_kill(
    agent: Callable[[], AbstractContextManager[Any]],
) -> None:
    colours = [list(COLOURS)[seed % 3] for seed in range(128)]

    async def ask_all(address: str) -> list[str]:
        async with openai.AsyncOpenAI(base_url=address, api_key="none", timeout=600, max_retries=0) as client:
            asked = (
                client.chat.completions.create(model="model", messages=messages(seed, colour), max_tokens=16)
                for seed, colour in enumerate(colours)
            )
            return [completion.choices[0].message.content for completion in await asyncio.gather(*asked)]

    with agent() as (process, address):
        assert asyncio.run(ask_all(address)) == colours
        process.kill()
    n_calls = len(N_CALLS)
    assert n_calls == 2 * 128
    with agent() as (_, address):
        assert asyncio.run(ask_all(address)) == colours
    assert len(N_CALLS) == n_calls


def test_a_stream_of_openais_client(agent: Callable[[], AbstractContextManager[Any]]) -> None:
    with agent() as (_, address), openai.OpenAI(base_url=address, api_key="none", timeout=120) as client:
        assert client.models.list().data[0].id == "model"
        stream = client.chat.completions.create(model="model", messages=messages(0, "red"), stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "red"


def test_the_rows_of_a_dataset_are_an_environment(clean_environment: dict[str, str], tmp_path: Path) -> None:
    store = ImageStore(str(tmp_path / "images"))
    write_prompts(tmp_path / "rows", [row(store, "red", 0)], store=store, split="train")
    command = ("environment", "serve", str(tmp_path / "rows"), "--method", "thyme")
    with (
        served(*command, env=clean_environment) as (_, address),
        httpx.Client(base_url=address, timeout=120) as http,
    ):
        about = {"method": "thyme", "protocol": "thyme", "max_rounds": 4}
        assert http.get("/rows").json() == {"rows": 1, "ids": ["red"], **about}
        episode = http.post("/episodes", json={"row": 0}).json()["episode"]
        answer = "<think>It is red.</think>\n<answer>red</answer>"
        end = http.post(f"/episodes/{episode}/step", json={"text": answer}).json()
        assert (end["done"], end["score"]["correct"]) == (True, 1.0)
