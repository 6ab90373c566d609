"""One client at work on the mock endpoint, in a process of its own; prints what it took, as JSON.

    python -m benchmarks.policy_client aiohttp|bare|darkroom|shared URL FOLDER N_ROWS

``aiohttp`` posts and reads JSON, nothing else: the least that a client on this transport can do. ``bare`` is the openai
client on its aiohttp transport and nothing else. ``darkroom`` is the whole layer: ledger, gate,
budget, retries, accounting. ``shared`` is the same as one of several processes on the ledger in ``FOLDER``, which have
``IN_ALL`` calls in flight together; each has rows of its own.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import openai

from pipelines.models.messages import message
from pipelines.models.policies import CompletionRequest, Endpoint, OpenAIPolicy, PolicyError, RecordedPolicy
from pipelines.models.policies.shared_calls import SharedCalls
from pipelines.models.tasks import Task
from pipelines.records import Draft, Provenance, Reject, Sample, Truth
from pipelines.records.reject_reasons import Reason, reject
from pipelines.storage.images import ImageStore
from pipelines.storage.ledger import Ledger
from pipelines.storage.stage import map_rows

CONCURRENCY, IN_ALL = 256, 32
SYSTEM = "Answer the question in <answer></answer>."


async def least(url: str, folder: Path, asked: list[str]) -> None:
    gate = asyncio.Semaphore(CONCURRENCY)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENCY)) as session:

        async def one(seed: int, question: str) -> None:
            async with gate, session.post(f"{url}/chat/completions", json=_request(seed, question)) as response:
                await response.json()

        await asyncio.gather(*(one(seed, question) for seed, question in enumerate(asked)))


async def bare(url: str, folder: Path, asked: list[str]) -> None:
    gate = asyncio.Semaphore(CONCURRENCY)
    async with openai.AsyncOpenAI(
        base_url=url, api_key="none", max_retries=0, http_client=openai.DefaultAioHttpClient()
    ) as client:

        async def one(seed: int, question: str) -> None:
            async with gate:
                await client.chat.completions.create(**_request(seed, question))

        await asyncio.gather(*(one(seed, question) for seed, question in enumerate(asked)))


def _request(seed: int, question: str) -> dict[str, Any]:
    system = {"role": "system", "content": SYSTEM}
    user = {"role": "user", "content": [{"type": "text", "text": question}]}
    sampling = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 2048, "seed": seed, "stop": ["</answer>"]}
    return {"model": "mock", "messages": [system, user], **sampling}


async def shared(url: str, folder: Path, asked: list[str]) -> list[Draft | Reject]:
    own = [f"{question} (process {os.getpid()})" for question in asked]
    return await darkroom(url, folder, own, in_all=IN_ALL)


async def darkroom(url: str, folder: Path, asked: list[str], in_all: int | None = None) -> list[Draft | Reject]:
    rows = [_sample(n, question) for n, question in enumerate(asked)]
    with Ledger(f"sqlite:///{folder / 'ledger.sqlite'}") as ledger:
        calls = SharedCalls(ledger, url, in_all) if in_all else None
        endpoint = Endpoint(url, "mock", concurrency=CONCURRENCY)
        policy = OpenAIPolicy(endpoint, ImageStore(str(folder / "images")), shared=calls)
        async with RecordedPolicy(policy, ledger) as recorded:
            return await map_rows(rows, lambda row: _draft(row, recorded), concurrency=policy.concurrency)


async def _draft(sample: Sample, policy: RecordedPolicy) -> Draft | Reject:
    said = (message("system", SYSTEM), message("user", sample.question))
    task = Task(sample.sample_id, "counts", sample, (), {}, said, int(sample.sample_id))
    try:
        completion = await policy.write(CompletionRequest(said, ("</answer>",), task.seed, task))
    except PolicyError as error:
        return reject(Reason.POLICY_FAILED, str(error), stage="counts/drafts", row={}, sample_id=sample.sample_id)
    provenance = Provenance("openai", "mock", "", "{}", "", "", task.seed, "")
    return Draft(sample.sample_id, sample.sample_id, "counts", (), "{}", completion.text, completion.usage, provenance)


def _sample(n: int, question: str) -> Sample:
    return Sample(str(n), "mock", f"row/{n}", "CC0-1.0", (), question, (), "", Truth(), "counts")


_CLIENTS: dict[str, Callable[[str, Path, list[str]], Awaitable[Any]]] = {
    "aiohttp": least,
    "bare": bare,
    "darkroom": darkroom,
    "shared": shared,
}


def main(kind: str, url: str, folder: str, n_rows: str) -> None:
    asked = [f"What is row {n}?" for n in range(int(n_rows))]
    started, cpu_started = time.perf_counter(), time.process_time()
    asyncio.run(_run(_CLIENTS[kind](url, Path(folder), asked)))
    figures = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu_started,
        "memory_mb": _most_memory_mb(),
    }
    print(json.dumps(figures))


async def _run(work: Awaitable[Any]) -> Any:
    return await work


def _most_memory_mb() -> float:
    """Not `ru_maxrss`: a process inherits that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
