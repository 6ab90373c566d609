"""One client at work on the mock endpoint, in a process of its own; prints what it took, as JSON.

    python -m measurements.policy_client aiohttp|bare|darkroom|shared URL FOLDER N_ROWS

``aiohttp`` posts and reads JSON, nothing else: the least that a client on this transport can do. ``bare`` is the openai
client on that transport. ``darkroom`` is the whole layer: ledger, gate, budget, retries, accounting. ``shared`` is one
of several processes on the ledger in ``FOLDER``, with ``IN_ALL`` calls in flight together; each has rows of its own.
Where ``FOLDER`` holds images (``store_images``), each row has one of them; rows about one image follow each other.
"""

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import numpy as np
import openai
from PIL import Image

from darkroom.pipelines.models.messages import ImagePart, message
from darkroom.pipelines.models.policies import CompletionRequest, Endpoint, OpenAIPolicy, PolicyError, RecordedPolicy
from darkroom.pipelines.models.policies.limiter import SharedCalls
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import Draft, ImageRef, Provenance, Reject, Sample, Truth
from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.stage_runs import map_rows
from tests.image_files import encoded

CONCURRENCY, IN_ALL = 256, 32
SYSTEM = "Answer the question in <answer></answer>."
SIDE = 320
"""Pixels a side of an image of noise, which takes 308 kB as a PNG."""


class Row(NamedTuple):
    """A question, about an image of the store in the client's folder where there are any."""

    question: str
    image: ImageRef | None


def store_images(folder: Path, n_images: int) -> None:
    """For the rows of the client that will work in ``folder``."""
    store, chance = ImageStore(str(folder / "images")), np.random.default_rng(0)
    for _ in range(n_images):
        noise = Image.fromarray(chance.integers(0, 256, (SIDE, SIDE, 3), np.uint8))
        store.ingest(encoded(noise, compress_level=1))


def rows_about(folder: Path, n_rows: int) -> list[Row]:
    names = sorted(path.name for path in (folder / "images").glob("*/*"))
    images = [ImageRef(name, SIDE, SIDE, "RGB", "PNG") for name in names]
    return [Row(f"What is row {n}?", images[n * len(images) // n_rows] if images else None) for n in range(n_rows)]


async def least(url: str, folder: Path, rows: list[Row]) -> None:
    gate = asyncio.Semaphore(CONCURRENCY)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENCY)) as session:

        async def one(seed: int, row: Row) -> None:
            async with gate, session.post(f"{url}/chat/completions", json=_request(seed, row, folder)) as response:
                await response.json()

        await asyncio.gather(*(one(seed, row) for seed, row in enumerate(rows)))


async def bare(url: str, folder: Path, rows: list[Row]) -> None:
    gate = asyncio.Semaphore(CONCURRENCY)
    async with openai.AsyncOpenAI(
        base_url=url, api_key="none", max_retries=0, http_client=openai.DefaultAioHttpClient()
    ) as client:

        async def one(seed: int, row: Row) -> None:
            async with gate:
                await client.chat.completions.create(**_request(seed, row, folder))

        await asyncio.gather(*(one(seed, row) for seed, row in enumerate(rows)))


def _request(seed: int, row: Row, folder: Path) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if row.image is not None:
        data = (folder / "images" / row.image.sha256[:2] / row.image.sha256).read_bytes()
        url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
        content.append({"type": "image_url", "image_url": {"url": url}})
    content.append({"type": "text", "text": row.question})
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
    sampling = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 2048, "seed": seed, "stop": ["</answer>"]}
    return {"model": "mock", "messages": messages, **sampling}


async def shared(url: str, folder: Path, rows: list[Row]) -> list[Draft | Reject]:
    own = [row._replace(question=f"{row.question} (process {os.getpid()})") for row in rows]
    return await darkroom(url, folder, own, in_all=IN_ALL)


async def darkroom(url: str, folder: Path, rows: list[Row], in_all: int | None = None) -> list[Draft | Reject]:
    samples = [sample(n, row) for n, row in enumerate(rows)]
    with Ledger(f"sqlite:///{folder / 'ledger.sqlite'}") as ledger:
        calls = SharedCalls(ledger, url, in_all) if in_all else None
        endpoint = Endpoint(url, "mock", concurrency=CONCURRENCY)
        policy = OpenAIPolicy(endpoint, ImageStore(str(folder / "images")), shared=calls)
        async with RecordedPolicy(policy, ledger) as recorded:
            return await map_rows(samples, lambda row: draft(row, recorded), concurrency=policy.concurrency)


async def draft(
    sample: Sample, policy: RecordedPolicy, *, system: str | None = SYSTEM, stop: tuple[str, ...] = ("</answer>",)
) -> Draft | Reject:
    """One call, with the sample's images."""
    user = message("user", *map(ImagePart, sample.images), sample.question)
    said = (user,) if system is None else (message("system", system), user)
    task = Task(sample.sample_id, "counts", sample, (), {}, said, int(sample.sample_id))
    try:
        completion = await policy.write(CompletionRequest(said, stop, task.seed, task))
    except PolicyError as error:
        return reject(Reason.POLICY_FAILED, str(error), stage="counts/drafts", row={}, sample_id=sample.sample_id)
    provenance = Provenance("openai", "mock", "", "{}", "", "", task.seed, "")
    return Draft(sample.sample_id, sample.sample_id, "counts", (), "{}", completion.text, completion.usage, provenance)


def sample(n: int, row: Row) -> Sample:
    images = () if row.image is None else (row.image,)
    return Sample(str(n), "mock", f"row/{n}", "CC0-1.0", images, row.question, (), "", Truth(), "counts")


_Client = Callable[[str, Path, list[Row]], Coroutine[Any, Any, Any]]
_CLIENTS: dict[str, _Client] = {"aiohttp": least, "bare": bare, "darkroom": darkroom, "shared": shared}


def main(kind: str, url: str, folder: str, n_rows: str) -> None:
    rows = rows_about(Path(folder), int(n_rows))
    started, cpu_started = time.perf_counter(), time.process_time()
    asyncio.run(_CLIENTS[kind](url, Path(folder), rows))
    figures = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu_started,
        "memory_mb": memory_mb("VmHWM"),
    }
    print(json.dumps(figures))


def memory_mb(name: str) -> float:
    """Memory of this process: ``VmRSS``, or the peak ``VmHWM``. Not `ru_maxrss`, which is inherited from the parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
