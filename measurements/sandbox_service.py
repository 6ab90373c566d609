"""What the service costs beside the sandbox in process: CPU time of a call, and 10,000 calls of 64 clients at once.

    python -m measurements.sandbox_service --calls 10000 --clients 64

CPU time is that of the process that holds the pool and of its sandboxes; the clients' is apart. A crop is 400 x 300
pixels of a photograph of 2000 x 1500; "crop, enlarge, save" is the task of ``measurements.task``.
"""

import argparse
import asyncio
import base64
import io
import math
import sys
import time
from collections.abc import Awaitable, Callable

import aiohttp
import numpy as np
import psutil
from mcp import Client, MCPError
from PIL import Image

from darkroom.pipelines.services import files
from darkroom.sandbox import SandboxPool
from measurements.task import code_of
from tests.image_files import encoded
from tests.served import served

EMPTY = "pass"
CROP = "display(Image.open(image_path).crop((200, 300, 600, 600)))"


def photo() -> bytes:
    noise = np.random.default_rng(0).integers(0, 255, (150, 200, 3), dtype=np.uint8)
    return encoded(Image.fromarray(noise).resize((2000, 1500), Image.Resampling.BICUBIC), "JPEG", quality=92)


def in_process(data: bytes, code: str, n: int) -> tuple[float, float]:
    """CPU seconds of a call, by itself and as a rollout loop makes it: it waits for many, and its model gets PNGs."""
    process = psutil.Process()
    with SandboxPool() as pool, pool.group([data]) as group, group.session() as session:

        async def looped() -> None:
            for _ in range(n):
                observation = await session.arun(code)
                assert observation.ok
                await files.encoded([shown.pixels for shown in observation.images])

        session.run(code)
        before = cpu_seconds(process)
        for _ in range(n):
            assert session.run(code).ok
        between = cpu_seconds(process)
        asyncio.run(looped())
        return (between - before) / n, (cpu_seconds(process) - between) / n


def cpu_seconds(process: psutil.Process) -> float:
    """Of the process and of all below it, which live as long as their session does."""
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


async def opened(address: str, data: bytes) -> str:
    task = {"images": [base64.b64encode(data).decode()]}
    async with aiohttp.ClientSession() as http, http.post(f"{address}/sessions", json=task) as answer:
        return str((await answer.json())["session"])


async def over_http(address: str, data: bytes, code: str, n: int, process: psutil.Process) -> tuple[float, float]:
    """CPU seconds of a call: the service's, the client's."""
    session = await opened(address, data)
    async with aiohttp.ClientSession() as http:

        async def call() -> None:
            async with http.post(f"{address}/sessions/{session}/tools/run_code", json={"code": code}) as answer:
                assert (await answer.json())["status"] == "ok"

        return await measured(call, n, process)


async def over_mcp(address: str, data: bytes, code: str, n: int, process: psutil.Process) -> tuple[float, float]:
    """CPU seconds of a call: the service's, the client's."""
    async with Client(f"{address}/sessions/{await opened(address, data)}/mcp") as client:

        async def call() -> None:
            assert (await client.call_tool("run_code", {"code": code})).structured_content["status"] == "ok"

        return await measured(call, n, process)


async def measured(call: Callable[[], Awaitable[None]], n: int, process: psutil.Process) -> tuple[float, float]:
    await call()
    before, own = cpu_seconds(process), time.process_time()
    for _ in range(n):
        await call()
    return (cpu_seconds(process) - before) / n, (time.process_time() - own) / n


async def many(address: str, n_clients: int, n_calls: int) -> tuple[int, int, int]:
    """Calls that were answered, that were lost, and whose answer was another client's or had other pixels.

    At least ``n_calls`` are made, as many by each client.
    """
    answered = lost = foreign = 0

    async def client(number: int) -> None:
        nonlocal answered, lost, foreign
        pixels = np.random.default_rng(number).integers(0, 256, (60, 80, 3), np.uint8)
        name = await opened(address, encoded(Image.fromarray(pixels)))
        code = f"print({number})\ndisplay(Image.open(image_path).crop((5, 6, 70, 50)))"
        async with Client(f"{address}/sessions/{name}/mcp") as mcp:
            for _ in range(math.ceil(n_calls / n_clients)):
                try:
                    shown = await mcp.call_tool("run_code", {"code": code})
                except (MCPError, OSError) as error:
                    print(f"lost: {error!r}", file=sys.stderr)
                    lost += 1
                    continue
                answered += 1
                image = next(part for part in shown.content if part.type == "image")
                seen = np.asarray(Image.open(io.BytesIO(base64.b64decode(image.data))))
                text = next(part.text for part in shown.content if part.type == "text")
                foreign += text.strip() != str(number) or not np.array_equal(seen, pixels[6:50, 5:70])

    await asyncio.gather(*map(client, range(n_clients)))
    return answered, lost, foreign


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=300, help="calls of one client for the CPU times")
    options = parser.parse_args()
    data = photo()
    with served("sandbox", "serve", "--sessions", "1000") as (serving, address):
        process = psutil.Process(serving.pid)
        for name, code in (("empty", EMPTY), ("crop", CROP), ("crop, enlarge, save", code_of("PIL"))):
            base, looped = in_process(data, code, options.repeat)
            print(f"{name}: in process {base * 1e3:.2f} ms, as a rollout loop calls it {looped * 1e3:.2f} ms")
            for way, run in (("HTTP", over_http), ("MCP", over_mcp)):
                own, clients = asyncio.run(run(address, data, code, options.repeat, process))
                times = f"{own / base:.1f} and {own / looped:.1f} times"
                print(f"  {way}: service {own * 1e3:.2f} ms ({times}), client {clients * 1e3:.2f} ms", flush=True)
        if options.calls:
            answered, lost, foreign = asyncio.run(many(address, options.clients, options.calls))
            print(
                f"{options.clients} clients of MCP: {answered} answers, {lost} lost, {foreign} foreign or other pixels"
            )


if __name__ == "__main__":
    main()
