"""What one server delivers to the pipeline: calls with images of a megapixel, through the whole layer of policies.

    python -m measurements.served_calls model FOLDER DATASET qwen2.5-vl-7b   # a published shape, to be served with
    vllm serve FOLDER --load-format dummy …                                # weights of no meaning
    python -m measurements.served_calls ask URL FOLDER --in-flight 64 --in-flight 256

Each call has another image and asks for ``TOKENS`` tokens (``ignore_eos``). A line of JSON for each limit of calls in
flight: calls and tokens a second, the client's CPU time, and of the time in which the limit is reached (a policy begins
with 16 calls) what the server itself reports, twice a second, and what `nvidia-smi` says of the GPU.
"""

import asyncio
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Annotated, Any, NamedTuple

import aiohttp
import numpy as np
import typer
from PIL import Image

from darkroom.pipelines.models.policies import Endpoint, OpenAIPolicy, RecordedPolicy
from darkroom.pipelines.records import Draft, ImageRef
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.stage import map_rows
from measurements.policy_client import Row, draft, sample
from tests.image_files import encoded

SIDES = (1150, 870)
"""Of an image: a megapixel, whose sides the policy reduces to multiples of 28."""
LIMITS = {"min_pixels": 3136, "max_pixels": 2_000_000, "size_step": 28}
"""Of Qwen2.5-VL."""
TOKENS = 256
EVERY = 0.5
"""Seconds between two looks at the server."""
FULL = 0.9
"""The limit counts as reached from so large a share of it on."""

app = typer.Typer(help=__doc__)


class Load(NamedTuple):
    """Of a server at one moment, in seconds of a clock."""

    at: float
    running: float
    waiting: float
    n_tokens: float
    """That it ever wrote."""
    gpu: float
    """Percent of the time in which a kernel ran."""


@app.command()
def model(folder: Path, dataset: Path, shape: str) -> None:
    """Configuration, processor and a tokenizer of the dataset's texts, filled up to the shape's vocabulary."""
    from darkroom.train.models.processor_files import save_processor
    from measurements.gpu_training import SIZES, published_shape

    config, processor = published_shape(shape, dataset, (LIMITS["min_pixels"], LIMITS["max_pixels"]))
    text = config.get_text_config()
    text.rope_parameters = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]}
    config.architectures, config.dtype = ["Qwen2_5_VLForConditionalGeneration"], "bfloat16"
    config.save_pretrained(folder)
    save_processor(processor, folder, model_type=SIZES[shape]["type"])
    file = folder / "tokenizer.json"
    saved = json.loads(file.read_text())
    words = saved["model"]["vocab"]
    words |= {f"word{number}": number for number in range(len(processor.tokenizer), SIZES[shape]["vocab"])}
    file.write_text(json.dumps(saved))


@app.command()
def ask(
    url: str,
    name: str,
    in_flight: Annotated[list[int], typer.Option(help="The policy's limit; may be repeated.")] = [256],  # noqa: B006
    rounds: Annotated[int, typer.Option(help="Calls over the limit.")] = 4,
) -> None:
    """Measures a server at ``url`` (with /v1) that serves ``name``."""
    for limit in in_flight:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(asyncio.run(_measured(url, name, Path(folder), limit, rounds * limit))), flush=True)


async def _measured(url: str, name: str, folder: Path, limit: int, n_calls: int) -> dict[str, Any]:
    store = ImageStore(str(folder / "images"))
    with ThreadPoolExecutor() as threads:
        images = list(threads.map(lambda number: _stored(store, number), range(n_calls)))
    samples = [sample(n, Row(f"What is in image {n}?", image)) for n, image in enumerate(images)]
    endpoint = Endpoint(
        url, name, concurrency=limit, max_tokens=TOKENS, send_stop=False, extra_body={"ignore_eos": True}, **LIMITS
    )
    loads: list[Load] = []
    watch = asyncio.create_task(_watch(url.removesuffix("/v1"), loads))
    try:
        with Ledger(f"sqlite:///{folder / 'ledger.sqlite'}") as ledger:
            async with RecordedPolicy(OpenAIPolicy(endpoint, store), ledger) as policy:
                started, cpu = time.perf_counter(), time.process_time()
                drafts = await map_rows(
                    samples, lambda row: draft(row, policy, system=None, stop=()), concurrency=limit
                )
                seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    finally:
        watch.cancel()
    written = [draft for draft in drafts if isinstance(draft, Draft)]
    n_tokens = sum(draft.usage.completion_tokens for draft in written)
    return {
        "limit": limit,
        "calls": n_calls,
        "failed": n_calls - len(written),
        "seconds": round(seconds, 1),
        "calls_per_second": round(len(written) / seconds, 2),
        "tokens_per_second": round(n_tokens / seconds),
        "prompt_tokens": round(mean(draft.usage.prompt_tokens for draft in written)) if written else 0,
        "cpu_seconds_per_1000_calls": round(cpu / n_calls * 1000, 2),
        "at_the_limit": _at_the_limit([load for load in loads if load.running + load.waiting >= FULL * limit]),
    }


def _at_the_limit(loads: Sequence[Load]) -> dict[str, float]:
    if len(loads) < 2:
        return {}
    first, last = loads[0], loads[-1]
    return {
        "seconds": round(last.at - first.at, 1),
        "tokens_per_second": round((last.n_tokens - first.n_tokens) / (last.at - first.at)),
        **{key: round(mean(getattr(load, key) for load in loads), 1) for key in ("running", "waiting", "gpu")},
    }


def _stored(store: ImageStore, number: int) -> ImageRef:
    """An image that compresses as a photograph does: smooth, with some noise."""
    chance, (width, height) = np.random.default_rng(number), SIDES
    coarse = Image.fromarray(chance.integers(0, 256, (9, 12, 3), np.uint8)).resize(SIDES, Image.Resampling.BICUBIC)
    noisy = np.asarray(coarse, np.int16) + chance.integers(-9, 10, (height, width, 3), np.int16)
    return store.ingest(encoded(Image.fromarray(noisy.clip(0, 255).astype(np.uint8)), "JPEG", quality=90))


_METRICS = ("num_requests_running", "num_requests_waiting", "generation_tokens_total")


async def _watch(server: str, loads: list[Load]) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{server}/metrics") as response:
                told = await response.text()
            counts = [sum(map(float, re.findall(rf"^vllm:{name}{{.*}} (\S+)", told, re.M))) for name in _METRICS]
            loads.append(Load(time.monotonic(), *counts, await _gpu()))
            await asyncio.sleep(EVERY)


async def _gpu() -> float:
    """Percent; 0 without a GPU."""
    command = ("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits")
    try:
        asked = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    except FileNotFoundError:
        return 0.0
    output, _ = await asked.communicate()
    return float(output.split()[0])


if __name__ == "__main__":
    app()
