"""What a turn costs the agent beside the model's own time: CPU time of its process, without its sandboxes.

    python -m measurements.agent_service --questions 384 --at-once 128 --format JPEG

The model is scripted and answers at once, in this process: it crops the sign of an image of 640 x 480 pixels in every
turn but the last, which says its colour. Each question is another image, so that nothing is on the ledger. Questions of
two turns and of six: the difference is what a turn more costs. What any service spends on the image of a question is
measured by itself.
"""

import argparse
import asyncio
import os
import tempfile
import time
from typing import Any

import aiohttp
import psutil
from PIL import ImageDraw

from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.publishing.html_page import data_url
from darkroom.pipelines.storage.images import ImageStore
from darkroom.train.agent.conversations import ChatRequest, question_of
from darkroom.train.agent.recent_images import RecentImages
from tests.image_files import encoded
from tests.json_endpoint import JsonHandler, endpoint
from tests.served import served
from tests.train.evaluation.conftest import COLOURS, TARGET, desert

TURNS = (2, 6)
_CODE = f"from PIL import Image\nImage.open(image_path).crop({TARGET}).save('c.png')\nprint('c.png')"


def handler(n_turns: int) -> type[JsonHandler]:
    """The scripted model: turn N has the question's image and N - 1 crops."""

    class Model(JsonHandler):
        protocol_version = "HTTP/1.1"  # a connection serves many turns, as real endpoints have it

        def answer(self, body: dict[str, Any]) -> dict[str, object]:
            parts = [
                part
                for message in body["messages"]
                if isinstance(message["content"], list)
                for part in message["content"]
            ]
            turn = sum(part["type"] == "image_url" for part in parts)
            if turn < n_turns:
                said = Thyme().write_round("I look.", _CODE, first=turn == 1)
            else:
                said = Thyme().write_answer("So it is.", "red", first=False)
            usage = {"prompt_tokens": 100, "completion_tokens": 10}
            return {"choices": [{"message": {"content": said}, "finish_reason": "stop"}], "usage": usage}

    return Model


def question(seed: int, format: str) -> dict[str, object]:
    image = desert(seed)
    ImageDraw.Draw(image).rectangle(TARGET, fill=COLOURS["red"])
    url = data_url(encoded(image, format), f"image/{format.lower()}")
    parts = [{"type": "text", "text": "Which colour?"}, {"type": "image_url", "image_url": {"url": url}}]
    return {"messages": [{"role": "user", "content": parts}]}


async def ask(address: str, questions: list[dict[str, object]], at_once: int) -> None:
    turn, timeout = asyncio.Semaphore(at_once), aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as http:

        async def one(body: dict[str, object]) -> None:
            async with turn, http.post(f"{address}/chat/completions", json=body) as response:
                answer = await response.json()
                assert answer["choices"][0]["message"]["content"] == "red", answer

        await asyncio.gather(*map(one, questions))


def intake(questions: list[dict[str, object]]) -> float:
    """CPU seconds to take a question in, alone in a process: base64, the image checked, its digest, its file."""
    requests = list(map(ChatRequest.model_validate, questions))
    with tempfile.TemporaryDirectory() as folder:
        store, before = RecentImages(ImageStore(folder)), time.process_time()
        for request in requests:
            question_of(request, store)
        return (time.process_time() - before) / len(requests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=384)
    parser.add_argument("--at-once", type=int, default=128)
    parser.add_argument("--format", choices=("PNG", "JPEG"), default="PNG", help="of the images")
    options = parser.parse_args()
    questions = [question(seed, options.format) for seed in range(options.questions + 1)]
    spent = {turns: measured(questions, turns, options.at_once) for turns in TURNS}
    for turns, cpu in spent.items():
        print(f"{turns} turns: {1000 * cpu:.1f} ms of CPU a question, {1000 * cpu / turns:.1f} ms a turn")
    fewer, more = TURNS
    print(f"a turn more: {1000 * (spent[more] - spent[fewer]) / (more - fewer):.1f} ms")
    print(f"the image of a question is taken in by itself in {1000 * intake(questions[:64]):.1f} ms")


def measured(questions: list[dict[str, object]], n_turns: int, at_once: int) -> float:
    """CPU seconds of the agent a question, all but the first, which starts pool and imports."""
    with tempfile.TemporaryDirectory() as home, endpoint(handler(n_turns)) as url:
        env = {**os.environ, "DARKROOM_HOME": home}
        with served("agent", "serve", "--url", url, "--model", "model", env=env) as (process, address):
            asyncio.run(ask(address, questions[:1], 1))
            agent = psutil.Process(process.pid)
            before = agent.cpu_times()
            asyncio.run(ask(address, questions[1:], at_once))
            after = agent.cpu_times()
    cpu: float = after.user + after.system - before.user - before.system
    return cpu / len(questions[1:])


if __name__ == "__main__":
    main()
