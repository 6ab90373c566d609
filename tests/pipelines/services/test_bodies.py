"""What clients send: base64 as Python's strict reader reads it, and no body costs more than its bytes."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import io
import json
import tracemalloc
from collections.abc import AsyncIterator
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, strategies as st
from PIL import Image

from darkroom.pipelines.services import ServiceError, listening
from darkroom.pipelines.services.files import AnswerImages, decoded
from darkroom.pipelines.services.listening import SMALL_MB
from darkroom.pipelines.services.sessions import OpenRequest, Sessions
from tests.matrices import first_quickly


def test_base64_is_refused_and_read_as_by_the_strict_reader():
    rng, n_read = Random(0), 0
    for _ in range(20_000):
        text = "".join(rng.choices("AQgw+/=-_ \n", [8, 8, 8, 8, 2, 2, 6, 1, 1, 1, 1], k=rng.randrange(9)))
        try:
            expected = binascii.a2b_base64(text, strict_mode=True)
            if text.endswith("=") and len(text.rstrip("=")) % 4 == 0:
                raise binascii.Error("padding after a whole group, which Python 3.11 reads")
        except binascii.Error:
            with pytest.raises(ValueError, match="not base64"):
                decoded(text)
        else:
            n_read += 1
            assert decoded(text) == expected
    assert 1000 < n_read < 19_000


def test_a_data_url_is_read_as_its_payload():
    data = Random(0).randbytes(100_000)
    assert decoded(f"data:image/png;base64,{base64.b64encode(data).decode()}") == data


def keys(n: int) -> bytes:
    return b"{" + b",".join(b'"k%d":1' % number for number in range(n)) + b"}"


HOSTILE = {
    "unknown keys": lambda n: keys(n),
    "empty objects": lambda n: b'{"images":[' + b"{}," * n + b"{}]}",
    "empty lists": lambda n: b'{"a":[' + b"[]," * n + b"[]]}",
    "numbers": lambda n: b'{"images":[' + b"1," * n + b"1]}",
    "MCP": lambda n: (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":' + keys(n) + b"}}"
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("kind", first_quickly(HOSTILE))
async def test_no_route_parses_a_body_of_too_many_values(client, kind) -> None:
    async with client() as http:
        described = (await http.get("/openapi.json")).json()["paths"]
        routes = [path.replace("{session}", "nobody") for path, of in described.items() if "post" in of]
        assert len(routes) >= 3
        for path in (*routes, "/mcp", "/sessions/nobody/mcp"):
            for n in (50_000, 120_000):
                body = HOSTILE[kind](n)
                tracemalloc.start()
                answer = await http.post(path, content=body, headers={"Content-Type": "application/json"})
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large"), path
                assert peak < 5 * len(body) + 3_000_000, "copies of the body, and no object per value"
        assert (await http.get("/health")).status_code == 200


@pytest.mark.anyio
async def test_a_body_with_few_values_may_be_large_where_it_carries_images_and_nowhere_else(client) -> None:
    async with client(most_mb=16) as http:
        large = {"images": ["A" * (SMALL_MB << 20)]}
        assert (await http.post("/sessions", json=large)).status_code == 422, "read, and no image"
        for path in ("/sessions/nobody/tools/run_code", "/sessions/nobody/mcp"):
            answer = await http.post(path, json=large)
            assert (answer.status_code, answer.json()["error"]["message"]) == (413, "the body has more than 4 MiB")


@pytest.mark.anyio
async def test_a_program_of_many_commas_is_a_program(client, photo) -> None:
    async with client() as http:
        session = (await http.post("/sessions", json={"images": [photo]})).json()["session"]
        code = f'print(len([{"1, " * 30_000}]))  # \\" {{: ,,,'
        answer = await http.post(f"/sessions/{session}/tools/run_code", json={"code": code})
        assert (answer.status_code, answer.json()["text"].strip()) == (200, "30000")


def n_parts(value: object) -> int:
    """Strings, commas and opening brackets of a value's JSON."""
    if isinstance(value, dict):
        return 1 + len(value) + max(0, len(value) - 1) + sum(map(n_parts, value.values()))
    if isinstance(value, list):
        return 1 + max(0, len(value) - 1) + sum(map(n_parts, value))
    return int(isinstance(value, str))


JSON = st.recursive(
    st.none() | st.integers() | st.text(alphabet='",:[]{}\\ab\n', max_size=9),
    lambda of: st.lists(of, max_size=5) | st.dictionaries(st.text(alphabet='",:[]{}\\ab', max_size=5), of, max_size=5),
    max_leaves=30,
)


@given(JSON)
def test_parts_are_counted_outside_of_strings(value: object) -> None:
    body, n = json.dumps(value).encode(), n_parts(value) + 1
    with patch.object(listening, "MAX_PARTS", n):
        listening.check_parts(body)
    with patch.object(listening, "MAX_PARTS", n - 1), pytest.raises(ServiceError, match="values: send fewer"):
        listening.check_parts(body)


@pytest.mark.parametrize("text", [b'"' + b"\\" * 4_000_001, b'"' * 4_000_001, b'"a\\"' * 1_000_000, b"{" * 4_000_000])
def test_no_text_is_read_more_than_once(text: bytes) -> None:
    """Were it read again from every quote, this would take hours."""
    with contextlib.suppress(ServiceError):
        listening.check_parts(text)


@pytest.mark.anyio
async def test_special_tokens_are_short_and_few(client) -> None:
    async with client() as http:
        for tokens, status in ((["<|one|>"] * 4096, 201), (["<|one|>"] * 4097, 422), (["<" + "x" * 128], 422)):
            assert (await http.post("/sessions", json={"special_tokens": tokens})).status_code == status


@pytest.mark.anyio
async def test_a_body_that_does_not_end_is_given_up(client, monkeypatch) -> None:
    monkeypatch.setattr(listening, "BODY_SECONDS", 0.05)

    async def endless() -> AsyncIterator[bytes]:
        yield b'{"seed":'
        await asyncio.Event().wait()

    sent = []

    async def send(message: dict) -> None:
        sent.append(message)

    parts = endless()

    async def receive() -> dict:
        return {"type": "http.request", "body": await anext(parts), "more_body": True}

    async with client() as http:
        scope = {"type": "http", "method": "POST", "path": "/sessions", "headers": [(b"host", b"127.0.0.1")]}
        await http._transport.app({**scope, "query_string": b"", "http_version": "1.1"}, receive, send)
    assert sent[0]["status"] == 422
    assert b"was not there within" in sent[1]["body"]


@pytest.mark.anyio
async def test_bodies_that_are_read_at_once_are_bounded_for_each_client_and_in_all(client) -> None:
    """Each body is sent in two pieces, with others' between them."""
    async with client(most_mb=16) as http:
        app = http._transport.app
        statuses: dict[str, int] = {}

        async def sends(name: str, size: int, others: asyncio.Event, done: asyncio.Event) -> None:
            pieces = iter([{"type": "http.request", "body": b" " * size, "more_body": True}])

            async def receive() -> dict:
                if (piece := next(pieces, None)) is not None:
                    return piece
                others.set()
                await done.wait()
                return {"type": "http.disconnect"}

            async def send(message: dict) -> None:
                statuses.setdefault(name, message.get("status", 0))
                others.set()

            scope = {"type": "http", "method": "POST", "path": "/sessions", "headers": [(b"host", b"127.0.0.1")]}
            await app({**scope, "query_string": b"", "client": (name.partition(" ")[0], 1)}, receive, send)

        done, running = asyncio.Event(), []
        held = [
            f"{client} {n}" for client in ("first", "second") for n in range(8)
        ]  # 16 MiB each, half of it each client
        for name in [*held, "first 8", "third 0"]:
            running.append(asyncio.create_task(sends(name, 16 << 20, others := asyncio.Event(), done)))
            await others.wait()
        assert statuses == {"first 8": 429, "third 0": 429}
        done.set()
        await asyncio.gather(*running)
        assert (await http.post("/sessions", json={})).status_code == 201, "nothing is held by those that have gone"


@pytest.mark.anyio
async def test_answers_that_wait_to_be_read_are_bounded(pool) -> None:
    sessions = Sessions(pool)
    first, second = [await sessions.open(OpenRequest()) for _ in range(2)]
    show = {"code": "display(Image.new('RGB', (100, 100)))"}
    sessions.most_held = 30_000
    async with sessions.registry.running():
        async with sessions.call(first, "run_code", show) as outcome:
            assert [image.size for image in outcome.images] == [(100, 100)]
            with pytest.raises(ServiceError, match="wait to be read") as refused:
                async with sessions.call(second, "run_code", {"code": "n = 1"}):
                    pass
            assert refused.value.kind == "too_busy"
        async with sessions.call(second, "run_code", {"code": "print('n' in globals())"}) as outcome:
            assert outcome.observation.text == "False\n", "nothing happened"


@given(st.lists(st.integers(1, 50), max_size=4), st.text(max_size=20))
def test_images_take_their_places_in_the_answer(sides: list[int], text: str) -> None:
    images = [Image.new("RGB", (side, 2), (side, 1, 2)) for side in sides]
    places = AnswerImages()
    marks = places.add(images[:2], compression=0) + places.add(images[2:], compression=9)
    answer = json.loads(b"".join(places.fill(json.dumps([text, *marks, text]).encode())))
    assert [answer[0], answer[-1]] == [text, text]
    for image, data in zip(images, answer[1:-1], strict=True):
        assert Image.open(io.BytesIO(base64.b64decode(data, validate=True))).tobytes() == image.tobytes()
