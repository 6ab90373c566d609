"""Attacks through the service: what a client sends harms neither the host nor the session of another client."""

from __future__ import annotations

import asyncio
import base64
import io
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn
from PIL import Image

from darkroom.pipelines.services.http_api import service
from darkroom.pipelines.services.sessions import Sessions
from darkroom.sandbox import Edit, Observation, ShownImage
from tests.image_files import encoded
from tests.matrices import every_nth
from tests.sandbox.arena import Arena, descendants, open_arena
from tests.sandbox.attacks import ATTACKS, LIMITS, attack, skip_where_it_is_known_to_succeed
from tests.sandbox.conftest import full_tier, photo

__all__ = ["full_tier", "photo"]
CASES = [case for case in ATTACKS if case["category"] != "resource"]
"""All but those that spend time, memory or disk, whose limits are the sandbox's own tests."""


class RemoteSession:
    """A session of the service, for the code that attacks sessions in process."""

    alive = True

    def __init__(self, http: httpx.Client, image: str, seed: int) -> None:
        self.http = http
        self.path = f"/sessions/{http.post('/sessions', json={'images': [image], 'seed': seed}).json()['session']}"

    def run(self, code: str) -> Observation:
        sent = {"code": code.encode("utf-8", "replace").decode()}
        shown = self.http.post(f"{self.path}/tools/run_code", json=sent).raise_for_status().json()
        images = tuple(
            ShownImage(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"), f"image {number}")
            for number, data in enumerate(shown["images"])
        )
        edits = tuple(Edit(**edit) for edit in shown["edits"])
        error = shown.get("error")
        return Observation(shown["status"], shown["text"], images, error, shown["seconds"], edits, (), shown["broken"])

    def close(self) -> None:
        self.http.delete(self.path)


class RemoteGroup:
    """The group of the arena, as its clients see it."""

    def __init__(self, http: httpx.Client, image: str) -> None:
        self.http, self.image = http, image

    def session(self, *, seed: int = 0) -> RemoteSession:
        return RemoteSession(self.http, self.image, seed)


def start_all_threads(executor: Executor) -> None:
    """Those that wait for calls are started when they are needed: all are there before the host is looked at."""
    assert isinstance(executor, ThreadPoolExecutor)
    together = threading.Barrier(executor._max_workers)
    for waits in [executor.submit(together.wait) for _ in range(executor._max_workers)]:
        waits.result()


@pytest.fixture(scope="module")
def corner(photo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corner of the photo: here each session has a group of its own, which decodes its image anew."""
    path = tmp_path_factory.mktemp("corner") / photo.name
    with Image.open(photo) as image:
        image.crop((0, 0, 400, 300)).save(path, quality=90)
    return path


@pytest.fixture(scope="module")
def arena(full_tier: None, corner: Path) -> Iterator[Arena]:
    waiting = ThreadPoolExecutor(4)
    with open_arena(corner, LIMITS, tier="full") as arena, socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(service(Sessions(arena.pool)), log_level="warning"))

        async def serve() -> None:
            asyncio.get_running_loop().set_default_executor(waiting)
            await server.serve([listening])

        thread = threading.Thread(target=asyncio.run, args=(serve(),))
        thread.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=300) as http:
            remote: Any = RemoteGroup(http, base64.b64encode(corner.read_bytes()).decode())
            before = descendants(arena.pool.pid)
            session = remote.session()  # the client's connection is there before the host is looked at
            session.run("print(1)")
            session.close()
            for executor in (waiting, arena.pool._terms.executor):
                start_all_threads(executor)
            while descendants(arena.pool.pid) - before:
                time.sleep(0.05)
            arena.group = remote
            yield arena
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize("case", every_nth(CASES, 24), ids=lambda case: case["name"])
def test_an_attack_through_the_service_has_no_effect(arena: Arena, case: dict) -> None:
    skip_where_it_is_known_to_succeed(arena, case)
    damage = attack(arena, case)
    assert damage.faults == []
    assert damage.status in case["acceptable_status"]


def test_other_clients_images_are_not_in_reach(arena: Arena) -> None:
    secret, own = (np.full((20, 20, 3), level, np.uint8) for level in (201, 7))
    files = [base64.b64encode(encoded(Image.fromarray(pixels))).decode() for pixels in (secret, own)]
    http = arena.group.http
    held, attacker = (RemoteSession(http, file, 0) for file in files)
    held.run("open('note.txt', 'w').write('of the other')")
    seen = attacker.run(
        "import glob\n"
        "for path in glob.glob('/**', recursive=True):\n"
        "    try:\n"
        "        if Image.open(path).getpixel((0, 0)) == (201, 201, 201): print('FOUND', path)\n"
        "    except Exception: pass\n"
        "print(os.path.exists('note.txt'), Image.open(image_path).getpixel((0, 0)))"
    )
    assert seen.text == "False (7, 7, 7)\n"
    held.close()
    attacker.close()
