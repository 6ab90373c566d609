"""The policy behind HTTP, against a server that says what the tests tell it to."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from darkroom.pipelines.models.messages import ImagePart, message
from darkroom.pipelines.models.policies import (
    Completion,
    CompletionRequest,
    OpenAIPolicy,
    PolicyError,
    PolicyUnavailable,
)
from darkroom.pipelines.models.policies.budget import BudgetPool
from darkroom.pipelines.models.policies.recorded import RecordedPolicy
from darkroom.pipelines.models.policies.settings import Endpoint
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import ImageRef, Usage
from tests.json_endpoint import ScriptedServer

KEY = "sk-secret-0123456789"
GOOD = {
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "It says 42."}}],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020},
}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([(200, GOOD)]).serving() as server:
        yield server


@pytest.fixture
def ask(server, store, make_case, monkeypatch):
    """One turn from the server, with an endpoint's settings."""
    monkeypatch.setenv("TEST_KEY", KEY)

    def turn(images: tuple[ImageRef, ...] = ()) -> CompletionRequest:
        said = (message("system", "Be brief."), message("user", *map(ImagePart, images), "What does it say?"))
        sample = make_case().sample
        return CompletionRequest(
            (*said, message("assistant", "Hm.")), ("</code>",), 7, Task("t", "crop", sample, (), {}, said, 7)
        )

    def write(images: tuple[ImageRef, ...] = (), schema: dict[str, Any] | None = None, **settings: Any) -> Completion:
        endpoint = Endpoint(server.url, "model", **{"key_variable": "TEST_KEY", "max_retries": 2, **settings})

        async def once() -> Completion:
            policy = OpenAIPolicy(endpoint, store)
            try:
                return await policy.write(replace(turn(images), schema=schema))
            finally:
                await policy.close()

        return asyncio.run(once())

    return write


def check(endpoint: Endpoint, store: Any) -> None:
    async def once() -> None:
        policy = OpenAIPolicy(endpoint, store)
        try:
            await policy.check()
        finally:
            await policy.close()

    asyncio.run(once())


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Nobody listens there, and nobody else can."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


# --- whether anything can be had


def test_where_nothing_listens_the_policy_is_unavailable_at_once(store, silent_port):
    import openai  # noqa: F401  # its modules take a second on a slow machine

    started = time.perf_counter()
    with pytest.raises(PolicyUnavailable, match="DARKROOM_POLICY_URL"):
        check(Endpoint(f"http://127.0.0.1:{silent_port}/v1", "model"), store)
    assert time.perf_counter() - started < 9  # no request waits for its end, which is after ten


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_names_the_variable_and_not_the_key(server, store, monkeypatch, status):
    monkeypatch.setenv("TEST_KEY", KEY)
    server.says((status, {"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    with pytest.raises(PolicyUnavailable, match="TEST_KEY") as caught:
        check(Endpoint(server.url, "model", key_variable="TEST_KEY"), store)
    assert KEY not in str(caught.value)


def test_a_missing_key_names_the_variable(store, monkeypatch):
    monkeypatch.delenv("TEST_KEY", raising=False)
    with pytest.raises(PolicyUnavailable, match="set the environment variable TEST_KEY"):
        check(Endpoint("https://api.example.com/v1", "model", key_variable="TEST_KEY"), store)


@pytest.mark.parametrize("status", [200, 404, 500])
def test_any_other_answer_means_that_the_endpoint_is_there(server, store, status):
    server.says((status, {"data": [], "object": "list"}))
    check(Endpoint(server.url, "model"), store)
    assert server.asked[0][0] == "/v1/models"


@pytest.mark.parametrize(
    ("url", "is_local"),
    [("http://localhost:8000/v1", True), ("http://[::1]:8000/v1", True), ("https://localhost.example.com/v1", False)],
)
def test_only_this_machine_is_local(url, is_local):
    assert Endpoint(url, "model").is_local == is_local


# --- turns that cannot be had


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_request_that_is_wrong_in_itself_is_not_tried_again(server, ask, status):
    server.says((status, {"error": {"message": "too many images"}}))
    with pytest.raises(PolicyError, match="too many images"):
        ask()
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_recovers_is_asked_again(server, ask, status):
    server.says((status, {"error": {"message": "busy"}}), (200, GOOD))
    assert ask().text == "It says 42."
    assert len(server.asked) == 2


def test_a_server_that_stays_broken_is_an_error_after_all_retries(server, ask):
    server.says((500, {"error": {"message": "out of memory"}}))
    with pytest.raises(PolicyError, match="out of memory"):
        ask()
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    "body", [{}, {"choices": []}, {"choices": None}, [], "null", '{"choices": [', "<html>Sign in</html>", "<"]
)
def test_a_response_without_a_completion_is_an_error(server, ask, body):
    server.says((200, body))
    with pytest.raises(PolicyError, match=f"model at {server.url}"):
        ask(max_retries=0)


def test_a_slow_server_is_an_error(server, ask, monkeypatch):
    given_up = threading.Event()
    monkeypatch.setattr(server, "next", lambda: (given_up.wait(60) or True) and (200, GOOD))
    try:
        with pytest.raises(PolicyError, match="Timeout"):
            ask(timeout_seconds=0.1, max_retries=0)
    finally:
        given_up.set()


@pytest.mark.parametrize("status", [400, 401, 500])
def test_the_key_is_in_no_error(server, ask, status):
    server.says((status, {"error": {"message": f"Incorrect API key provided: {KEY}", "header": f"Bearer {KEY}"}}))
    with pytest.raises(PolicyError) as caught:
        ask(max_retries=0)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None


# --- turns


def test_a_completion_has_its_text_and_usage(ask):
    assert ask() == Completion("It says 42.", True, Usage(1, 1000, 20, 0.0))


def test_the_cost_follows_the_prices_that_the_user_gave(ask):
    usage = ask(usd_per_million_prompt_tokens=2.0, usd_per_million_completion_tokens=10.0).usage
    assert usage.cost_usd == pytest.approx(0.002 + 0.0002)


ODD = [[], "12", {"prompt_tokens": "many", "completion_tokens": -5}, {"prompt_tokens": [1], "completion_tokens": 1e999}]


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": None}, *ODD])
def test_a_server_that_counts_nothing_costs_nothing(server, ask, usage):
    server.says((200, {**GOOD, "usage": usage}))
    assert ask().usage == Usage(calls=1)


def test_counts_that_are_texts_are_read(server, ask):
    server.says((200, {**GOOD, "usage": {"prompt_tokens": "1000", "completion_tokens": 20.0}}))
    assert ask().usage == Usage(calls=1, prompt_tokens=1000, completion_tokens=20)


def test_content_in_parts_is_their_text(server, ask):
    parts = [{"type": "text", "text": "It says "}, {"type": "refusal"}, {"type": "text", "text": "42."}]
    server.says((200, {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}))
    assert ask().text == "It says 42."


@pytest.mark.parametrize(("reason", "finished"), [("length", False), ("stop", True), (None, True)])
def test_only_the_token_limit_leaves_a_turn_unfinished(server, ask, reason, finished):
    server.says((200, {**GOOD, "choices": [{**GOOD["choices"][0], "finish_reason": reason}]}))
    assert ask().finished == finished


@pytest.mark.parametrize("content", [None, ""])
def test_a_completion_without_text_is_empty(server, ask, content):
    server.says((200, {**GOOD, "choices": [{"message": {"content": content}, "finish_reason": "stop"}]}))
    assert ask().text == ""


def test_a_lone_surrogate_in_a_completion_becomes_a_question_mark(server, ask):
    server.says((200, {**GOOD, "choices": [{"message": {"content": "a\ud800b"}, "finish_reason": "stop"}]}))
    assert ask().text == "a?b"


def test_the_request_holds_every_sampling_parameter(server, ask):
    ask(temperature=0.5, top_p=0.9, max_tokens=64)
    sent = {name: server.last[name] for name in ("model", "temperature", "top_p", "max_tokens", "seed", "stop")}
    assert sent == {
        "model": "model",
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 64,
        "seed": 7,
        "stop": ["</code>"],
    }


def test_stop_strings_can_be_kept_back(server, ask):
    ask(send_stop=False)
    assert "stop" not in server.last


def test_the_schema_of_an_answer_that_must_be_json_is_sent(server, ask):
    ask(schema={"type": "object"})
    assert server.last["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_the_schema_can_be_kept_back(server, ask):
    ask(schema={"type": "object"}, send_schema=False)
    assert "response_format" not in server.last


def test_the_key_travels_in_its_header_alone(server, ask):
    ask()
    _, body, headers = server.asked[-1]
    assert headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in json.dumps(body)


def test_a_line_end_after_the_key_is_no_part_of_it(server, ask, monkeypatch):
    monkeypatch.setenv("TEST_KEY", f"{KEY}\n")
    ask()
    assert server.asked[-1][2]["authorization"] == f"Bearer {KEY}"


def test_a_user_and_a_password_in_the_url_travel_instead_of_the_key(server, store):
    server.says((200, {"data": [], "object": "list"}))
    check(Endpoint(server.url.replace("http://", "http://me:s%40cret@"), "model"), store)
    path, _, headers = server.asked[0]
    assert path == "/v1/models"
    assert headers["authorization"] == f"Basic {base64.b64encode(b'me:s@cret').decode()}"


@pytest.mark.parametrize("url", ["nonsense", "ftp://127.0.0.1/v1", "http://127.0.0.1:99999/v1", "http:///v1"])
def test_what_is_no_url_of_an_endpoint_is_unavailable(store, url, monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)
    with pytest.raises(PolicyUnavailable, match="DARKROOM_POLICY_URL"):
        check(Endpoint(url, "model", key_variable="TEST_KEY"), store)


@pytest.mark.parametrize(
    ("format", "media_type"),
    [("JPEG", "image/jpeg"), ("PNG", "image/png"), ("WEBP", "image/webp"), ("MPO", "image/jpeg")],
)
def test_images_travel_as_the_stored_bytes_with_their_type(server, ask, store, make_image, encoded, format, media_type):
    options = {"save_all": True, "append_images": [make_image(1)]} if format == "MPO" else {}
    data = encoded(make_image(), format, **options)
    ask((store.ingest(data),))
    system, user, assistant = server.last["messages"]
    assert (system, assistant) == (
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "Hm."},
    )
    image, text = user["content"]
    assert text == {"type": "text", "text": "What does it say?"}
    assert image["image_url"]["url"] == f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def test_whatever_format_came_in_endpoints_get_one_that_they_take(server, ask, store, make_image, encoded):
    for format in ("TIFF", "GIF", "BMP", "AVIF"):
        ask((store.ingest(encoded(make_image(), format)),))
        assert server.last["messages"][1]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")


def test_the_identity_is_what_determines_the_text(store):
    identity = OpenAIPolicy(Endpoint("http://127.0.0.1:1/v1", "m", revision="r", temperature=0.1), store).identity
    assert identity.as_json() == {
        "policy": "openai",
        "model": "m",
        "revision": "r",
        "sampling": {"temperature": 0.1, "top_p": 1.0, "max_tokens": 2048},
    }


@pytest.mark.parametrize(
    "body",
    [
        {**GOOD, "usage": None},
        {**GOOD, "usage": {"prompt_tokens": -1, "completion_tokens": "many"}},
        {"choices": [{"message": {"content": ["It says ", {"text": "42."}]}}]},
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    ],
)
def test_an_odd_answer_is_charged_once_and_on_the_ledger(server, store, ledger, turn, body):
    server.says((200, body))

    async def twice() -> tuple[Completion, Completion, int]:
        pool = BudgetPool()
        async with RecordedPolicy(
            OpenAIPolicy(Endpoint(server.url, "model"), store, budget_pool=pool), ledger
        ) as policy:
            return await policy.write(turn()), await policy.write(turn()), pool.spent.calls

    first, second, n_paid = asyncio.run(twice())
    assert first == second
    assert (len(server.asked), n_paid) == (1, 1)


def test_a_page_of_html_is_named_and_not_asked_for_again(server, ask):
    server.says((200, "<!doctype html><html><head><title>Sign\n in</title></head></html>"))
    with pytest.raises(PolicyError, match=r"a page of HTML \('Sign in'\) instead of a completion: set the URL"):
        ask()
    assert len(server.asked) == 1


def test_json_without_an_end_to_its_depth_is_an_error_of_the_endpoint(server, ask):
    server.says((200, "[" * 200_000))
    with pytest.raises(PolicyError, match="nested too deeply"):
        ask()
