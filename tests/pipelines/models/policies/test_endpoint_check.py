"""`darkroom policy check`, at endpoints that behave as engines and gateways do."""

from __future__ import annotations

import base64
import io
import json
import re
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

import pytest
from PIL import Image
from typer.testing import CliRunner

from darkroom.assets.cli import app
from tests.json_endpoint import JsonHandler, endpoint


class Engine(JsonHandler):
    """Does what it is asked for, as vLLM's server does; subclasses behave otherwise."""

    listed: ClassVar[list[Any]] = [{"id": "qwen", "max_model_len": 32768}]
    refused: ClassVar[tuple[str, ...]] = ()
    """Fields that end a request with 400."""
    asked: ClassVar[list[dict[str, Any]]] = []

    def do_GET(self) -> None:
        self.reply({"object": "list", "data": self.listed})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        if named := [field for field in self.refused if field in body]:
            self.reply({"error": {"message": f"Unsupported parameter: {named[0]!r}"}}, status=400)
        else:
            self.reply(self.answer(body))

    def answer(self, body: dict[str, Any]) -> Any:
        messages = [self.said(body, seed=body.get("seed", 0) + number) for number in range(body.get("n", 1))]
        choices = [{"index": n, "finish_reason": "stop", "message": said} for n, said in enumerate(messages)]
        n_images = json.dumps(body["messages"]).count("image_url") // 2
        usage = {"prompt_tokens": 10 + 300 * n_images, "completion_tokens": 5}
        return {"model": body["model"], "choices": choices, "usage": usage}

    def said(self, body: dict[str, Any], *, seed: int) -> dict[str, Any]:
        return {"role": "assistant", "content": self.text(body, seed=seed)}

    def text(self, body: dict[str, Any], *, seed: int) -> str:
        if body["messages"][0]["role"] == "system":
            return "BANANA"
        parts = body["messages"][-1]["content"]
        question = parts[-1]["text"]
        if "response_format" in body:
            return '{"n": 4}'
        if "Copy exactly" in question:
            text = question.partition("\n")[2]
            for stop in body.get("stop", ()):
                text = text.partition(stop)[0]
            return text
        if "left half" in question and len(parts) > 1:
            data = parts[0]["image_url"]["url"].partition(",")[2]
            red, _, blue = Image.open(io.BytesIO(base64.b64decode(data))).getpixel((10, 10))
            return "Red." if red > blue else "Blue."
        return f"{123_456_789_012 + seed}" if "12 digits" in question else "4"


class Reasoning(Engine):
    """An endpoint of OpenAI's newer models: no sampling, another name for the limit, no stop strings."""

    refused = ("max_tokens", "temperature", "top_p", "stop", "n")

    def said(self, body: dict[str, Any], *, seed: int) -> dict[str, Any]:
        return {**super().said(body, seed=seed), "reasoning": "I add them."}


class Gateway(Engine):
    """Takes every field and honours none; states prices and limits; sees no image."""

    listed: ClassVar[list[Any]] = [
        {"id": "me/qwen", "context_length": 8192, "pricing": {"prompt": "0.0000002", "completion": "8e-7"}}
    ]

    def end_headers(self) -> None:
        self.send_header("x-ratelimit-limit-requests", "500")
        super().end_headers()

    def answer(self, body: dict[str, Any]) -> Any:
        kept = {name: value for name, value in body.items() if name not in ("stop", "n", "response_format", "seed")}
        return super().answer(kept)

    def text(self, body: dict[str, Any], *, seed: int) -> str:
        return "I see no image." if "image_url" in str(body) else super().text(body, seed=len(self.asked))


class Blind(Engine):
    """A text model's server, which drops images: `transformers serve`."""

    def answer(self, body: dict[str, Any]) -> Any:
        answered = super().answer(body)
        answered["usage"]["prompt_tokens"] = 37
        return {**answered, "model": f"{body['model']}@main"}


class Overloaded(Engine):
    """An endpoint that has no time for several answers just now."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = 503 if "n" in body else 200
        self.reply({"error": {"message": "overloaded"}} if "n" in body else self.answer(body), status=status)


class Hiccup(Engine):
    """A gateway that fails once."""

    def do_POST(self) -> None:
        if self.asked:
            return super().do_POST()
        self.asked.append({})
        self.reply({"error": {"message": "Bad gateway"}}, status=502)


class NoText(Engine):
    refused = ("model",)


def check(handler: type[BaseHTTPRequestHandler], monkeypatch: pytest.MonkeyPatch, *options: str) -> Any:
    monkeypatch.setattr(handler, "asked", [], raising=False)
    with endpoint(handler) as url:
        for name, value in {"": "openai", "_URL": url, "_MODEL": "qwen"}.items():
            monkeypatch.setenv(f"DARKROOM_POLICY{name}", value)
        return CliRunner().invoke(app, ["policy", "check", *options])


def findings(handler: type[BaseHTTPRequestHandler], monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, str], Any]:
    result = check(handler, monkeypatch, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    return {finding["about"]: finding["state"] for finding in told["findings"]}, told


def test_an_engine_that_does_all_needs_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    states, told = findings(Engine, monkeypatch)
    missing = {"thought apart", "limits in headers"}
    assert {about for about, state in states.items() if state != "yes"} == missing
    assert told["settings"] == {}
    assert "context 32,768 tokens" in told["findings"][0]["seen"]


def test_refused_fields_are_left_out_and_the_limit_gets_its_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    states, told = findings(Reasoning, monkeypatch)
    extra = json.loads(told["settings"].pop("DARKROOM_POLICY_EXTRA"))
    assert extra == {"temperature": None, "top_p": None, "max_tokens": None, "max_completion_tokens": 2048}
    assert told["settings"] == {"DARKROOM_POLICY_SEND_STOP": "False", "DARKROOM_POLICY_SEND_N": "False"}
    assert (states["text"], states["image"], states["thought apart"], states["stop strings"]) == (
        "yes",
        "yes",
        "yes",
        "no",
    )


def test_the_settings_are_what_the_endpoint_then_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    result = check(Reasoning, monkeypatch)
    lines = re.findall(r"^(DARKROOM_\w+)=(.*)$", result.output, re.MULTILINE)
    assert {name for name, _ in lines} == {f"DARKROOM_POLICY_{name}" for name in ("EXTRA", "SEND_STOP", "SEND_N")}
    for name, value in lines:
        monkeypatch.setenv(name, value.strip("'"))
    states, told = findings(Reasoning, monkeypatch)
    assert (states["text"], "EXTRA" in str(told["settings"])) == ("yes", False)


def test_what_is_taken_and_not_honoured_is_no_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    states, told = findings(Gateway, monkeypatch)
    unmet = ("image", "stop strings", "several answers (n)", "seed", "JSON schema")
    assert [states[about] for about in unmet] == ["unclear", "no", "no", "no", "unclear"]
    assert told["settings"] == {
        "DARKROOM_POLICY_PROMPT_PRICE": "0.2",
        "DARKROOM_POLICY_COMPLETION_PRICE": "0.8",
        "DARKROOM_POLICY_SEND_N": "False",
    }
    assert "x-ratelimit-limit-requests: 500" in told["findings"][-1]["seen"]


def test_a_failure_that_may_pass_changes_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    states, told = findings(Overloaded, monkeypatch)
    assert (states["several answers (n)"], told["settings"]) == ("no", {})


def test_a_failure_that_passes_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert findings(Hiccup, monkeypatch)[0]["text"] == "yes"


def test_images_that_take_no_tokens_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    states, _ = findings(Blind, monkeypatch)
    assert states["image"] == "no"
    assert "images at once" not in states
    assert states["text"] == "yes"  # of `qwen@main`


def test_a_model_that_is_not_listed_and_answers_nothing_ends_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoText, "listed", [{"id": "other"}, {"id": 7}, "x"])
    result = check(NoText, monkeypatch)
    assert result.exit_code == 1
    assert "no 'qwen' in it: other" in result.output
    assert "Unsupported parameter: 'model'" in result.output
    assert "The settings fit" not in result.output
    assert "It answers no text" in result.output


@pytest.mark.parametrize("kind", ["oracle", "local"])
def test_without_an_endpoint_the_settings_are_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARKROOM_JUDGE", kind)
    monkeypatch.setenv("DARKROOM_POLICY_MODEL", "x")
    result = CliRunner().invoke(app, ["policy", "check", "judge"])
    assert result.exit_code != 0
    assert "DARKROOM_JUDGE=openai" in result.output


def test_where_nothing_listens_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"": "openai", "_URL": "http://127.0.0.1:9/v1", "_MODEL": "qwen"}.items():
        monkeypatch.setenv(f"DARKROOM_POLICY{name}", value)
    result = CliRunner().invoke(app, ["policy", "check"])
    assert result.exit_code != 0
    assert "nothing answers at http://127.0.0.1:9/v1" in result.output
