"""What one request can cost: hostile bodies of doubling size, to every route that a service documents. CPU time and
memory grow no faster than the body, and the loop, on which all others wait, is never held for long."""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import httpx
import pytest

from darkroom.pipelines.services.http_api import service as sandbox_service
from darkroom.pipelines.services.listening import MAX_PARTS
from darkroom.pipelines.services.sessions import Sessions
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox import Limits, SandboxPool
from darkroom.train.agent.http_api import application as agent_service
from darkroom.train.environment.episodes import Episodes
from darkroom.train.environment.http_api import application as environment_service
from darkroom.train.evaluation.settings import AgentSettings
from darkroom.train.rl.methods import Judges, named_method, settings_of
from darkroom.train.rl.rollouts.prompts import open_prompts
from tests.asgi import client_of
from tests.json_endpoint import JsonHandler, endpoint
from tests.pipelines.publishing.shipping import write_prompts
from tests.train.evaluation.conftest import row

pytestmark = pytest.mark.anyio
SIZES = [1 << power for power in range(17, 21)]
"""Bytes, each twice the one before; the last is the largest body of a route without images, or near it."""
FILL: dict[str, Callable[[int], bytes]] = {
    "one text": lambda n: b'"' + b"A" * n + b'"',
    "markup": lambda n: b'"' + b"<answer>x</answer><code>{" * (n // 25) + b'"',
    "one number": lambda n: b"1" * n,
    "numbers": lambda n: b"[" + b"1," * (n // 2) + b"1]",
    "keys": lambda n: b"{" + b",".join(b'"k%d":1' % number for number in range(n // 10)) + b"}",
    "the same key": lambda n: b"{" + b'"k":1,' * (n // 6) + b'"k":1}',
    "nested lists": lambda n: b"[" * (n // 2) + b"]" * (n // 2),
    "nested objects": lambda n: b'{"k":' * (n // 6) + b"1" + b"}" * (n // 6),
    "not ended": lambda n: b'{"k":[' * (n // 6),
}


DEAREST = ("markup", "keys", "nested objects")


class Target(NamedTuple):
    """A place in a request that takes a value: what is written before and after it."""

    name: str
    path: str
    before: bytes
    after: bytes
    is_first: bool = False


def fields(
    name: str, path: str, schema: dict[str, Any], own: dict[str, Any], head: dict[str, Any] | None = None
) -> Iterator[Target]:
    """The whole body, each of its fields, and one that it does not have. ``own``: values of required ones."""
    around = json.dumps(head or "HERE").encode()
    before, after = around.split(b'"HERE"')
    if head is None:
        yield Target(f"{name} body", path, before, after, is_first=True)
    for field in (*schema.get("properties", {}), "unknown"):
        others = {key: value for key, value in own.items() if key != field}
        text = b"".join(
            json.dumps(key).encode() + b": " + json.dumps(value).encode() + b", " for key, value in others.items()
        )
        start = before + b"{" + text + json.dumps(field).encode() + b": "
        yield Target(f"{name} {field}", path, start, b"}" + after, is_first=head is not None and field == "unknown")


class Running(NamedTuple):
    """A service in this process, its places, and what it takes to go on."""

    http: httpx.AsyncClient
    targets: list[Target]


async def targets_of(http: httpx.AsyncClient, names: dict[str, str], own: dict[str, Any]) -> list[Target]:
    """The places of all routes of the OpenAPI document; ``names`` fill their paths, ``own`` their required fields."""
    described = (await http.get("/openapi.json")).json()
    targets = []
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            assert method in ("get", "post", "delete")
            if "requestBody" in route:
                [content] = route["requestBody"]["content"].values()
                schema = described["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
                targets += fields(path, path.format_map(names), schema, own)
    return targets


@asynccontextmanager
async def sandbox(request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    with SandboxPool(limits=Limits(seconds=5)) as pool:
        async with client_of(sandbox_service(Sessions(pool))) as http:
            name = (await http.post("/sessions", json={"protocol": "tool_call"})).json()["session"]
            targets = await targets_of(
                http, {"session": name}, {"bbox_2d": [0, 0, 1, 1], "code": "1", "target_frames": [0]}
            )
            for path in ("/mcp", f"/sessions/{name}/mcp"):
                asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
                tools = (await http.post(path, json=asked, headers=HEADERS)).json()["result"]["tools"]
                for tool in tools:
                    call = {"name": tool["name"], "arguments": "HERE"}
                    head = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
                    targets += fields(f"{path} {tool['name']}", path, tool["inputSchema"], {"session": name}, head)
            assert len({target.path for target in targets}) >= 7
            yield Running(http, targets)


@asynccontextmanager
async def environment(request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    folder, method = request.getfixturevalue("tmp_path"), named_method("thyme")
    store = ImageStore(str(folder / "images"))
    write_prompts(folder / "rows", [row(store, "red", 0)], store=store, split="train")
    settings = settings_of("thyme", protocol="thyme")
    episodes = Episodes(open_prompts(folder / "rows"), settings, method, Judges(), most_open=10_000, idle_seconds=600.0)
    app = environment_service(episodes, version="1", host="127.0.0.1", token="", compression=0)
    async with client_of(app) as http:
        truth = {"question": "?", "answer": "1", "choices": [], "grader": {"kind": "maths"}}
        yield Running(http, await targets_of(http, {"name": "EPISODE"}, {"row": 0, "answer": "1", "truth": truth}))


class Says(JsonHandler):
    def answer(self, body: Any) -> Any:
        message = {"content": "<think>So.</think>\n<answer>red</answer>"}
        return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {}}


@asynccontextmanager
async def agent(request: pytest.FixtureRequest) -> AsyncIterator[Running]:
    home = {"DARKROOM_HOME": str(request.getfixturevalue("tmp_path") / "home")}
    with endpoint(Says) as url, Workspace.from_environment(home) as workspace:
        settings = AgentSettings(url=url, model="model")
        app = agent_service(settings, workspace, version="1", host="127.0.0.1", token="", most_mb=8)
        async with client_of(app) as http:
            asked = [{"role": "user", "content": "Which?"}]
            targets = await targets_of(http, {}, {"messages": asked})
            [path] = {target.path for target in targets}
            for kind in ("text", "image_url", "video_url"):
                part = {"type": kind, kind: "HERE"}
                before, after = (
                    json.dumps({"messages": [{"role": "user", "content": [part]}]}).encode().split(b'"HERE"')
                )
                targets.append(Target(f"{path} {kind}", path, before, after))
            yield Running(http, targets)


HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
SERVICES = {"sandbox": sandbox, "environment": environment, "agent": agent}


class Cost(NamedTuple):
    cpu: float
    held: float
    """CPU time of the longest step of the event loop."""


async def cost(http: httpx.AsyncClient, target: Target, body: bytes) -> Cost:
    """Ask once, and /health meanwhile."""
    longest, run = 0.0, asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        nonlocal longest
        began = time.thread_time()
        run(handle)
        longest = max(longest, time.thread_time() - began)

    path = await path_of(http, target)
    with patch.object(asyncio.Handle, "_run", timed):
        began = time.process_time()
        asked = asyncio.ensure_future(http.post(path, content=body, headers=HEADERS))
        well = await http.get("/health")
        answer = await asked
        spent = Cost(time.process_time() - began, longest)
    assert well.status_code == 200
    assert answer.status_code < 500, (target.name, answer.text[:300])
    assert len(answer.content) < 200_000, "no answer repeats what was sent"
    return spent


async def peak(http: httpx.AsyncClient, target: Target, body: bytes) -> int:
    """Bytes that Python held at most while it answered."""
    path = await path_of(http, target)
    tracemalloc.start()
    try:
        await http.post(path, content=body, headers=HEADERS)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def path_of(http: httpx.AsyncClient, target: Target) -> str:
    if "EPISODE" not in target.path:
        return target.path
    return target.path.replace("EPISODE", (await http.post("/episodes", json={"row": 0})).json()["episode"])


@pytest.fixture(scope="module")
def unit() -> float:
    """CPU time to read the largest list of values that is let in, as this machine takes it now."""
    body = b"[" + b'{"k":1},' * (MAX_PARTS // 3) + b"1]"
    times = []
    for _ in range(5):
        began = time.process_time()
        json.loads(body)
        times.append(time.process_time() - began)
    return max(min(times), 0.005)


KINDS = [kind if kind in DEAREST else pytest.param(kind, marks=pytest.mark.soak) for kind in FILL]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("service", SERVICES)
async def test_a_hostile_body_costs_no_more_than_its_size(service, kind, unit, request) -> None:
    async with SERVICES[service](request) as running:
        for target in running.targets:
            bodies = [target.before + FILL[kind](size) + target.after for size in SIZES]
            costs = [await cost(running.http, target, body) for body in bodies]
            assert costs[-1].cpu < 24 * max(costs[0].cpu, 4 * unit), (target.name, costs, unit)  # eight times the size
            assert max(each.held for each in costs) < 60 * unit, (target.name, costs, unit)
            if target.is_first:  # slower than all the others
                assert await peak(running.http, target, bodies[-1]) < 12 * SIZES[-1] + 20_000_000, target.name
