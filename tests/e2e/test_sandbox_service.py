"""`darkroom sandbox serve` as other programs use it: many clients, a kill, a stop, a token, standard input."""

from __future__ import annotations

import asyncio
import base64
import io
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import numpy as np
import pytest
from mcp import Client, MCPError, StdioServerParameters
from PIL import Image

from darkroom.pipelines.services.listening import HEADER_SECONDS
from tests.image_files import encoded
from tests.served import served

Start = Callable[..., "Served"]


class Served:
    """A service that was started by its command."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process, self.address = process, address

    def open(self, **task: object) -> str:
        return httpx.post(f"{self.address}/sessions", json=task, timeout=60).raise_for_status().json()["session"]

    def run(self, session: str, code: str) -> httpx.Response:
        return httpx.post(f"{self.address}/sessions/{session}/tools/run_code", json={"code": code}, timeout=60)


@pytest.fixture
def start(clean_environment: dict[str, str]) -> Iterator[Start]:
    with ExitStack() as running:

        def begin(port: int = 0, **environment: str) -> Served:
            env = {**clean_environment, **environment}
            return Served(*running.enter_context(served("sandbox", "serve", env=env, port=port)))

        yield begin


def photo(seed: int) -> tuple[str, np.ndarray]:
    pixels = np.random.default_rng(seed).integers(0, 256, (60, 80, 3), np.uint8)
    return base64.b64encode(encoded(Image.fromarray(pixels))).decode(), pixels


def test_64_clients_of_mcp_at_once_lose_nothing_and_see_nothing_of_one_another(start: Start) -> None:
    served = start()

    async def client(number: int) -> int:
        image, pixels = photo(number)
        name = await asyncio.to_thread(served.open, images=[image], protocol="tool_call")
        async with Client(f"{served.address}/sessions/{name}/mcp") as mcp:
            await mcp.call_tool("run_code", {"code": f"mine = {number}"})
            for left in range(0, 40, 8):
                shown = await mcp.call_tool("image_zoom_in", {"bbox_2d": [left, 5, left + 30, 50]})
                data = next(part.data for part in shown.content if part.type == "image")
                crop = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
                assert np.array_equal(crop, pixels[5:50, left : left + 30])
            shown = await mcp.call_tool("run_code", {"code": "print(mine)"})
            return int(shown.content[0].text)

    async def all_clients() -> list[int]:
        return await asyncio.gather(*map(client, range(64)))

    assert asyncio.run(all_clients()) == list(range(64))


def test_a_client_goes_on_after_the_service_was_killed_and_started_again(start: Start) -> None:
    first = start()
    port = int(first.address.rsplit(":", 1)[1])
    session = first.open()
    assert first.run(session, "print(1)").json()["text"] == "1\n"
    first.process.kill()
    first.process.wait()
    with pytest.raises(httpx.TransportError):
        first.run(session, "print(1)")
    again = start(port)
    lost = again.run(session, "print(1)")
    assert (lost.status_code, lost.json()["error"]["type"]) == (404, "unknown_session")
    assert again.run(again.open(), "print(2)").json()["text"] == "2\n"


@pytest.mark.soak
def test_a_client_of_mcp_goes_on_after_the_service_was_killed_and_started_again(start: Start) -> None:
    """If it calls in between, `mcp` ends it, with the connection error."""
    first = start()
    port = int(first.address.rsplit(":", 1)[1])

    async def talk() -> str:
        async with Client(f"{first.address}/sessions/{first.open()}/mcp") as mcp:
            assert not (await mcp.call_tool("run_code", {"code": "print(1)"})).is_error
            first.process.kill()
            first.process.wait()
            again = await asyncio.to_thread(start, port)
            lost = await mcp.call_tool("run_code", {"code": "print(1)"})
            assert (lost.is_error, lost.structured_content["error"]["type"]) == (True, "unknown_session")
            with pytest.raises(MCPError, match="unknown_session: no such session"):
                await mcp.list_tools()
        async with Client(f"{again.address}/sessions/{again.open()}/mcp") as mcp:
            return (await mcp.call_tool("run_code", {"code": "print(2)"})).content[0].text

    assert asyncio.run(talk()) == "2"


def test_a_stop_lets_a_call_end_and_leaves_no_process(start: Start) -> None:
    import psutil

    served = start()
    session = served.open()

    async def stopped_meanwhile() -> httpx.Response:
        async with httpx.AsyncClient(base_url=served.address, timeout=60) as http:
            path = f"/sessions/{session}/tools/run_code"
            call = asyncio.create_task(http.post(path, json={"code": "import time; time.sleep(1); print('ended')"}))
            await asyncio.sleep(0.4)
            served.process.send_signal(signal.SIGTERM)
            return await call

    children = psutil.Process(served.process.pid).children(recursive=True)
    assert asyncio.run(stopped_meanwhile()).json()["text"] == "ended\n"
    assert served.process.wait(timeout=60) in (0, -signal.SIGTERM)
    deadline = time.monotonic() + 30
    while any(child.is_running() and child.status() != "zombie" for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [child for child in children if child.is_running() and child.status() != "zombie"]


def test_other_machines_need_a_token(start: Start, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    refused = run("darkroom", "sandbox", "serve", "--host", "0.0.0.0", check=False)
    assert refused.returncode == 1
    assert "set DARKROOM_SERVICE_TOKEN" in " ".join(refused.stderr.split())
    served = start(DARKROOM_SERVICE_TOKEN="right")
    assert httpx.post(f"{served.address}/sessions", json={}).status_code == 401
    allowed = httpx.post(f"{served.address}/sessions", json={}, headers={"Authorization": "Bearer right"})
    assert allowed.status_code == 201


def test_a_header_without_an_end_is_refused_before_it_is_long(start: Start) -> None:
    served = start()
    address = httpx.URL(served.address)
    with socket.create_connection((address.host, address.port), timeout=60) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nX-Endless: ")
        n_sent, answer = 0, b""
        with suppress(ConnectionError):
            while n_sent < 64 << 20 and not answer:
                client.sendall(b"a" * 65536)
                n_sent += 65536
                if select.select([client], [], [], 0)[0]:
                    answer = client.recv(4096)
    assert n_sent < 8 << 20, "what is buffered meanwhile is the sockets'"
    assert not answer or answer.startswith(b"HTTP/1.1 400")
    assert httpx.get(f"{served.address}/health", timeout=60).status_code == 200


def test_connections_that_say_nothing_are_hung_up_and_hold_nothing(start: Start) -> None:
    served = start()
    address = httpx.URL(served.address)
    with ExitStack() as held:
        clients = [
            held.enter_context(socket.create_connection((address.host, address.port), timeout=60)) for _ in range(100)
        ]
        for n, client in enumerate(clients):
            client.sendall(b"GET /health HT"[: n % 15])
        began = time.monotonic()
        assert httpx.get(f"{served.address}/health", timeout=60).status_code == 200
        with suppress(ConnectionError):
            assert {client.recv(1) for client in clients} == {b""}
        assert time.monotonic() - began > HEADER_SECONDS / 2, "a slow client has time"
    session = served.open()
    assert served.run(session, "print(1 + 1)").json()["text"] == "2\n"


def test_a_port_that_is_taken_is_one_line(start: Start, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    port = start().address.rsplit(":", 1)[1]
    refused = run("darkroom", "sandbox", "serve", "--port", port, check=False)
    assert refused.returncode == 1
    assert "Address already in use; choose another --port" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_client_over_standard_input_and_output(root: Path, clean_environment: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "photo.png"
    image, pixels = photo(1)
    file.write_bytes(base64.b64decode(image))
    command = StdioServerParameters(
        command="darkroom",
        args=["sandbox", "serve", "--stdio", "--image", str(file)],
        env=clean_environment,
        cwd=str(root),
    )

    async def talk() -> np.ndarray:
        async with Client(command) as mcp:
            assert [tool.name for tool in (await mcp.list_tools()).tools] == ["run_code", "crop_image", "image_zoom_in"]
            shown = await mcp.call_tool("crop_image", {"bbox_2d": [0.5, 0.5, 1, 1]})
            return np.asarray(Image.open(io.BytesIO(base64.b64decode(shown.content[1].data))))

    assert np.array_equal(asyncio.run(talk()), pixels[30:, 40:])
