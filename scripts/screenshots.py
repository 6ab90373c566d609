"""Takes the README's screenshots: the asset graph, an asset's page, a trajectory. Needs chromium.

    python scripts/screenshots.py docs/images

Reads the workspace of DARKROOM_HOME after `make demo`, and starts the Dagster webserver itself.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
import websockets

from darkroom.assets.dagster_home.instance import prepare_dagster_home
from darkroom.pipelines.inspection.gallery import write_gallery
from darkroom.pipelines.storage.workspace import Workspace
from tests.ports import free_port

Call = Callable[..., Awaitable[Any]]
START_SECONDS = 300
GRAPH = "/asset-groups"
"""With every group closed: a family is one box."""
ASSET = "/assets/crop/trajectories?view=partitions&partition={partition}"


def main(
    folder: Annotated[Path, typer.Argument(help="Folder for the images.")] = Path("docs/images"),
    partition: Annotated[str, typer.Option(help="Partition on the asset's page.")] = "demo-0000",
) -> None:
    """Writes asset_graph.png, asset_page.png and trajectory.png into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with Workspace.from_environment() as workspace:
        prepare_dagster_home(workspace)
        page = workspace.home / "views" / "trajectory.html"
        write_gallery(page, [workspace.dataset("sft", "crop")], title="crop", limit=1)
    with webserver() as url, browser() as port:
        shots = [
            (f"{url}{GRAPH}", (1700, 1220), "crop", "[data-svg-viewport]", folder / "asset_graph.png"),
            (f"{url}{ASSET.format(partition=partition)}", (1500, 1310), "rows_in", "", folder / "asset_page.png"),
            (page.as_uri(), (1240, 1200), "Answer", "article", folder / "trajectory.png"),
        ]
        for address, size, text, element, path in shots:
            asyncio.run(take(port, address, size, text, element, path))
            print(path)


@contextmanager
def webserver() -> Iterator[str]:
    """Dagster's webserver on this graph, on a free port; its process group is killed at the end."""
    port = free_port()
    graph = ("-m", "darkroom.assets.definitions")
    with running([sys.executable, "-m", "dagster_webserver", *graph, "-h", "127.0.0.1", "-p", str(port)]):
        wait_for(f"http://127.0.0.1:{port}/server_info")
        yield f"http://127.0.0.1:{port}"


@contextmanager
def browser() -> Iterator[int]:
    """A headless chromium; yields the port of its debugging protocol."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        raise SystemExit("chromium is not installed; `make screenshots` installs it")
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        names = ("gpu", "quic", "background-networking", "component-update", "sync")
        fixed = ("--headless", "--no-sandbox", "--no-first-run", "--hide-scrollbars")
        own = (f"--user-data-dir={profile}", f"--remote-debugging-port={port}")
        with running([executable, *fixed, *(f"--disable-{name}" for name in names), *own, "about:blank"]):
            wait_for(f"http://127.0.0.1:{port}/json/version")
            yield port


@asynccontextmanager
async def tab(port: int, size: tuple[int, int]) -> AsyncIterator[Call]:
    """The browser's first tab, at ``size``: a function that calls a method of the debugging protocol."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
        page = next(tab for tab in json.load(answer) if tab["type"] == "page")
    async with websockets.connect(page["webSocketDebuggerUrl"], max_size=None) as connection:
        numbers = iter(range(1, 10_000))

        async def call(method: str, **params: Any) -> Any:
            number = next(numbers)
            await connection.send(json.dumps({"id": number, "method": method, "params": params}))
            while True:
                message = json.loads(await connection.recv())
                if message.get("id") == number:
                    return message["result"]

        width, height = size
        await call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        await call("Page.enable")
        yield call


async def take(port: int, address: str, size: tuple[int, int], text: str, element: str, path: Path) -> None:
    """Opens ``address``, waits until it shows ``text`` and stops changing, and saves an image.

    ``element``: CSS selector of the part to show; empty: the whole window.
    """
    async with tab(port, size) as call:
        await call("Page.navigate", url=address)
        await until_shown(call, text, address)
        clip = {"clip": await whole(call, element, size)} if element else {}
        shot = await call("Page.captureScreenshot", format="png", **clip)
        path.write_bytes(base64.b64decode(shot["data"]))


async def whole(call: Call, element: str, size: tuple[int, int]) -> dict[str, float]:
    """The bounds of ``element``, in a window that is made high enough and drawn: beyond it, parts may be blank."""
    clip = await bounds(call, element)
    height = max(size[1], math.ceil(clip["y"] + clip["height"]))
    await call("Emulation.setDeviceMetricsOverride", width=size[0], height=height, deviceScaleFactor=1, mobile=False)
    drawn = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    await call("Runtime.evaluate", expression=drawn, awaitPromise=True)
    return await bounds(call, element)


async def bounds(call: Call, element: str) -> dict[str, float]:
    """Where the first ``element`` is on the page, as a clip for a screenshot."""
    script = (
        f"(box => [box.x, box.y, box.width, box.height])(document.querySelector({element!r}).getBoundingClientRect())"
    )
    box = await call("Runtime.evaluate", expression=script, returnByValue=True)
    return dict(zip(("x", "y", "width", "height"), box["result"]["value"], strict=True)) | {"scale": 1}


async def until_shown(call: Call, text: str, address: str) -> None:
    """Waits for ``text``, then for two equal readings of the page after it stopped fetching.

    Raises ``TimeoutError`` with the text of the page.
    """
    deadline, before = time.monotonic() + START_SECONDS, ""
    while time.monotonic() < deadline:
        await asyncio.sleep(2)
        reading = await call("Runtime.evaluate", expression="document.body.innerText", returnByValue=True)
        page = reading["result"].get("value", "")
        if text in page and page == before and "fetching" not in page:
            return
        before = page
    raise TimeoutError(f"{address} did not show {text!r} in {START_SECONDS} s; it showed {before[:400]!r}")


@contextmanager
def running(command: list[str]) -> Iterator[None]:
    """A process in its own group, which is killed at the end; prints its output if it ends too early."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            yield
        finally:
            died = process.poll()
            if died is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if died is not None:
                output.seek(0)
                print(output.read().decode(errors="replace")[-2000:], file=sys.stderr)


def wait_for(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no answer at {url} in {START_SECONDS} s") from error
            time.sleep(0.3)


if __name__ == "__main__":
    typer.run(main)
