"""What a turn costs the agent beside the model's own time: CPU time of its process, without its sandboxes.

    python -m benchmarks.agent_service --questions 384 --at-once 128

The model is scripted and answers at once, in this process: it crops the sign of an image of 640 x 480 pixels, then says
its colour. Each question is another image, so that nothing is on the ledger. Two turns and one execution each. What
any service spends on the image of a question is measured by itself.
"""

import argparse
import asyncio
import base64
import io
import os
import tempfile
import time

import aiohttp
import psutil
from PIL import ImageDraw

from pipelines.storage.images import ImageStore
from tests.json_endpoint import endpoint
from tests.served import served
from tests.train.evaluation.conftest import TARGET, desert
from tests.train.evaluation.test_endpoint import COLOURS, Handler
from train.agent.conversations import ChatRequest, question_of

N_TURNS = 2


def question(seed: int) -> dict[str, object]:
    image, file = desert(seed), io.BytesIO()
    ImageDraw.Draw(image).rectangle(TARGET, fill=COLOURS["red"])
    image.save(file, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
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
    """CPU seconds to take a question in, alone in a process: base64, the image decoded, its digest, its file."""
    requests = list(map(ChatRequest.model_validate, questions))
    with tempfile.TemporaryDirectory() as folder:
        store, before = ImageStore(folder), time.process_time()
        for request in requests:
            question_of(request, store)
        return (time.process_time() - before) / len(requests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=384)
    parser.add_argument("--at-once", type=int, default=128)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, endpoint(Handler) as url:
        env = {**os.environ, "DARKROOM_HOME": home}
        with served("agent", "serve", "--url", url, "--model", "model", env=env) as (process, address):
            asyncio.run(ask(address, [question(0)], 1))  # pool and imports
            questions = [question(seed) for seed in range(1, options.questions + 1)]
            agent, started = psutil.Process(process.pid), time.monotonic()
            before = agent.cpu_times()
            asyncio.run(ask(address, questions, options.at_once))
            after, seconds = agent.cpu_times(), time.monotonic() - started
    cpu = after.user + after.system - before.user - before.system
    turns = N_TURNS * options.questions
    print(f"{options.questions} questions, {options.at_once} at once, all answered in {seconds:.0f} s")
    print(f"CPU of the agent: {1000 * cpu / turns:.1f} ms a turn, {1000 * cpu / options.questions:.1f} ms a question")
    print(f"of which its image is taken in by itself in {1000 * intake(questions[:64]):.1f} ms")


if __name__ == "__main__":
    main()
