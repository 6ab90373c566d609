"""What no client of a service can do to the others: each service as its own process, asked over sockets."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import websockets.sync.client
from PIL import Image

from darkroom.pipelines.services.listening import READ_SECONDS
from darkroom.pipelines.storage.images import ImageStore
from tests.e2e.test_agent_service import messages
from tests.json_endpoint import endpoint
from tests.pipelines.publishing.shipping import write_prompts
from tests.served import served
from tests.train.evaluation.conftest import row
from tests.train.evaluation.test_endpoint import Handler

LARGEST = (
    "import numpy as np\n"
    "for n in range(2):\n"
    "    display(Image.fromarray(np.random.default_rng(n).integers(0, 256, (4000, 4000, 3), np.uint8)))"
)
"""Shows 92 MiB of pixels, about the most that an observation may carry."""
SLEEPS = "import time\ntime.sleep(2)\nprint('slept')"


class Service(NamedTuple):
    """A service as its own process, and a request that it works on."""

    pid: int
    http: httpx.Client
    path: str
    body: dict

    @property
    def place(self) -> tuple[str, int]:
        url = self.http.base_url
        return url.host, url.port or 0

    def is_well(self) -> bool:
        return httpx.get(self.http.base_url.join("/health"), timeout=60).status_code == 200

    def peak_mb(self) -> int:
        """Since it was last asked."""
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        assert found is not None
        return int(found[1]) // 1024

    def post(self, path: str, body: dict, *, buffer: int | None = None) -> socket.socket:
        """A connection on which a whole request was sent."""
        data = json.dumps(body).encode()
        head = "Host: 127.0.0.1\nContent-Type: application/json\n"
        return self.send(f"POST {path} HTTP/1.1\n{head}Content-Length: {len(data)}\n\n", data, buffer=buffer)

    def send(self, head: str, body: bytes = b"", *, buffer: int | None = None) -> socket.socket:
        """A connection on which so much was sent."""
        client = socket.socket()
        client.settimeout(60)
        if buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        client.connect(self.place)
        client.sendall(head.replace("\n", "\r\n").encode() + body)
        return client


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[str, ...]]]:
    folder = tmp_path_factory.mktemp("served")
    store = ImageStore(str(folder / "images"))
    write_prompts(folder / "rows", [row(store, "red", 0)], store=store, split="train")
    with endpoint(Handler) as url:
        yield {
            "sandbox": ("sandbox", "serve"),
            "environment": ("environment", "serve", str(folder / "rows")),
            "agent": ("agent", "serve", "--url", url, "--model", "model"),
        }


@pytest.fixture(params=["sandbox", "environment", "agent"])
def service(request, commands, clean_environment) -> Iterator[Service]:
    with ExitStack() as running:
        process, address = running.enter_context(served(*commands[request.param], env=clean_environment))
        with httpx.Client(base_url=address.removesuffix("/v1"), timeout=120) as http:
            if request.param == "sandbox":
                path, body = (
                    f"/sessions/{http.post('/sessions', json={}).json()['session']}/tools/run_code",
                    {"code": "1"},
                )
            elif request.param == "environment":
                path, body = "/episodes", {"row": 0}
            else:
                path, body = "/v1/chat/completions", {"messages": messages(0, "red")}
            yield Service(process.pid, http, path, body)


only_sandbox = pytest.mark.parametrize("service", ["sandbox"], indirect=True)
only_environment = pytest.mark.parametrize("service", ["environment"], indirect=True)


def test_pages_of_other_origins_and_doubtful_hosts_are_refused_everywhere(service: Service) -> None:
    host = f"{service.place[0]}:{service.place[1]}"
    described = service.http.get("/openapi.json").json()["paths"]
    routes = [(method.upper(), path) for path, of in described.items() for method in of]
    assert len(routes) > 3
    for method, path in [*routes, ("POST", "/mcp"), ("GET", "/docs"), ("OPTIONS", "/health"), ("GET", "/ws")]:
        for origin in (
            "http://evil.example",
            "null",
            "",
            f"http://{host}.evil.example",
            "http://127.0.0.1:1",
            "file://",
        ):
            answer = service.http.request(method, path, headers={"Origin": origin})
            assert answer.status_code == 401, (method, path, origin)
            assert "access-control-allow-origin" not in answer.headers
    for more in ("Host: 127.0.0.1\n", f"Host: {host}\n", "Host: evil.example\n"):
        with service.send(f"GET /health HTTP/1.1\nHost: {host}\n{more}\n") as client:
            assert client.recv(4096).startswith(b"HTTP/1.1 400")
    assert service.http.get("/health", headers={"Origin": f"http://{host}"}).status_code == 200
    assert service.http.post(service.path, json=service.body, headers={"Origin": f"http://{host}"}).status_code < 300


def test_400_half_sent_requests_reset_nobody_who_has_256_descriptors(service: Service) -> None:
    resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (256, 256))
    head = f"POST {service.path} HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/json\nContent-Length: 9\n"
    with ExitStack() as held:
        for half, body in (("GET /health HT", b""), (head, b""), (f"{head}\n", b"{")):
            for _ in range(400):
                with suppress(ConnectionError):
                    held.enter_context(service.send(half, body))
            assert service.is_well()
            assert httpx.post(service.http.base_url.join(service.path), json=service.body, timeout=60).is_success


def test_a_body_in_tiny_chunks_costs_what_its_limit_costs_and_one_in_a_few_is_read(service: Service) -> None:
    head = f"POST {service.path} HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/json\n"
    n_sent, chunks = 0, b"1\r\n \r\n" * 20_000
    with service.send(f"{head}Transfer-Encoding: chunked\n\n") as client, suppress(ConnectionError):
        while n_sent < 64 << 20:
            client.sendall(chunks)
            n_sent += len(chunks)
    assert n_sent < 16 << 20, "what was sent meanwhile is the sockets'"
    assert service.is_well()
    body = json.dumps(service.body).encode()
    pieces = (body[start : start + 99] for start in range(0, len(body), 99))
    headers = {"Content-Type": "application/json"}
    assert service.http.post(service.path, content=pieces, headers=headers).is_success


def test_headers_that_come_at_once_are_bounded_as_well(service: Service) -> None:
    for n, status in ((1_000, b"200"), (40_000, b"400")):
        with service.send("GET /health HTTP/1.1\nHost: 127.0.0.1\n" + "X: a\n" * n + "\n") as client:
            assert client.recv(4096).startswith(b"HTTP/1.1 " + status)
    assert service.is_well()


def test_64_clients_at_once_are_answered(service: Service) -> None:
    async def ask() -> int:
        async with httpx.AsyncClient(base_url=service.http.base_url, timeout=120) as http:
            return (await http.post(service.path, json=service.body)).status_code

    async def all_clients() -> list[int]:
        return await asyncio.gather(*(ask() for _ in range(64)))

    assert all(status < 300 for status in asyncio.run(all_clients()))


def test_a_client_that_leaves_in_a_call_takes_nothing_with_it(service: Service) -> None:
    for _ in range(3):
        service.post(service.path, {"code": SLEEPS} if "code" in service.body else service.body).close()
    assert service.is_well()
    assert service.http.post(service.path, json=service.body).is_success


@only_sandbox
def test_a_session_that_ends_in_a_call_ends_the_call(service: Service) -> None:
    for seconds in (0.5, 2.0, 8.0, 32.0):  # until the call has begun, however slow the machine is
        session = f"/sessions/{service.http.post('/sessions', json={}).json()['session']}"
        url = service.http.base_url.join(f"{session}/tools/run_code")
        answers: list[httpx.Response] = []
        call = threading.Thread(target=_collect, args=(answers, url))
        call.start()
        time.sleep(seconds)
        assert service.http.delete(session).status_code == 204
        call.join()
        if answers[0].status_code != 404:
            break
    assert answers[0].status_code == 503 or answers[0].json()["status"] == "killed"
    assert service.http.post(f"{session}/tools/run_code", json=service.body).status_code == 404
    assert service.http.get("/health").json()["sessions"] == 1  # the fixture's


def _collect(answers: list[httpx.Response], url: httpx.URL) -> None:
    answers.append(httpx.post(url, json={"code": "while True: pass"}, timeout=90))


@only_environment
def test_an_episode_that_ends_in_a_step_ends_the_step(service: Service) -> None:
    episode = service.http.post("/episodes", json={"row": 0}).json()["episode"]
    turn = {"text": f"<think>I wait.\n<code>\n```python\n{SLEEPS}\n```\n</code>"}
    answers: list[httpx.Response] = []
    url = service.http.base_url.join(f"/episodes/{episode}/step")
    call = threading.Thread(target=lambda: answers.append(httpx.post(url, json=turn, timeout=60)))
    call.start()
    time.sleep(0.5)
    assert service.http.delete(f"/episodes/{episode}").status_code == 204
    call.join()
    assert (answers[0].status_code, answers[0].json()["error"]["type"]) == (404, "unknown_session")
    assert service.http.get("/health").json()["episodes"] == 0


@only_environment
def test_a_flood_of_websockets_leaves_room_for_others(service: Service) -> None:
    resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (256, 256))
    url = str(service.http.base_url.join("/ws")).replace("http", "ws", 1)
    with ExitStack() as held:
        n_refused = 0
        for _ in range(150):
            try:
                socket_ = held.enter_context(websockets.sync.client.connect(url, max_size=None))
            except websockets.exceptions.InvalidStatus as refused:
                n_refused += refused.response.status_code == 429
            else:
                socket_.send("[" * 1_000_000)
        assert n_refused > 50
        assert service.is_well()
        assert service.http.post(service.path, json=service.body).is_success
    for _ in range(600):
        with suppress(websockets.exceptions.InvalidStatus), websockets.sync.client.connect(url) as after:
            after.send(json.dumps({"type": "reset"}))
            assert json.loads(after.recv())["type"] == "observation"
            return
        time.sleep(0.1)
    pytest.fail("those that have gone still count")


@only_sandbox
def test_answers_that_are_not_read_hold_their_pixels_and_no_more(service: Service) -> None:
    service.peak_mb()
    before = service.peak_mb()
    code = {"code": LARGEST}
    read = service.http.post(service.path, json=code)
    assert read.status_code == 200
    shown = [Image.open(io.BytesIO(base64.b64decode(data))) for data in read.json()["images"]]
    assert [image.size for image in shown] == [(4000, 4000)] * 2
    one = service.peak_mb() - before
    assert one < 92 * 3
    with ExitStack() as held:
        for _ in range(16):
            session = service.http.post("/sessions", json={}).json()["session"]
            client = held.enter_context(service.post(f"/sessions/{session}/tools/run_code", code, buffer=4096))
            answer = client.recv(4096)
            if answer.startswith(b"HTTP/1.1 429"):
                break
            assert answer.startswith(b"HTTP/1.1 200")
        else:
            pytest.fail("nobody was refused")
        assert b"retry-after: 1" in answer
        assert service.is_well()
        assert service.peak_mb() - before < 92 * 12
    for _ in range(100):  # those that left hold nothing, after a while
        if (again := service.http.post(service.path, json=service.body)).status_code != 429:
            break
        time.sleep(0.1)
    assert again.is_success


@pytest.mark.soak
@only_sandbox
def test_an_answer_that_is_not_read_in_time_is_given_up(service: Service) -> None:
    with service.post(service.path, {"code": LARGEST}, buffer=4096) as client:
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        started = time.monotonic()
        assert service.http.post(service.path, json=service.body, timeout=READ_SECONDS + 60).is_success
        assert time.monotonic() - started > READ_SECONDS / 2, "the session's next call waits for its reader"
        read = b""
        with suppress(ConnectionError):
            while piece := client.recv(1 << 20):
                read = piece
    assert not read.endswith(b"0\r\n\r\n"), "it has no end"
