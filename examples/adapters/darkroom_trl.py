"""TRL's `environment_factory` for rows that `darkroom environment serve` plays. Runs by itself; nothing is exported.

    darkroom environment serve DATASET --method thyme     (where Darkroom is installed)
    export PYTHONPATH=FOLDER DARKROOM_ENVIRONMENT_URL=http://127.0.0.1:8767

    import darkroom_trl
    processor = AutoProcessor.from_pretrained(MODEL, padding_side="left")
    limits = {"max_tool_calling_iterations": darkroom_trl.max_rounds(), "max_completion_length": 4096}
    trainer = darkroom_trl.DarkroomGRPOTrainer(MODEL, args=GRPOConfig(**limits), **darkroom_trl.arguments(processor))

A turn with code is a call of the tool `turn` with the whole text, which the service reads as Darkroom does; what it
shows becomes a user turn. The last turn goes to the service when rewards are asked for. The reward is the service's; a
rollout that is no verdict on the model (its score is `broken`) has none and is left out of its group.
"""

from __future__ import annotations

import base64
import functools
import io
import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
from datasets import Dataset
from PIL import Image
from trl.trainer.grpo_trainer import GRPOTrainer

URL = os.environ.get("DARKROOM_ENVIRONMENT_URL", "http://127.0.0.1:8767")
TOKEN = os.environ.get("DARKROOM_SERVICE_TOKEN", "")
PROLOGUE = """{%- set turns = namespace(all=[]) -%}
{%- for message in messages -%}
    {%- set role = 'user' if message.role == 'tool' else message.role -%}
    {%- set content = message.content -%}
    {%- if message.tool_calls -%}
        {%- set calls = message.tool_calls | tojson -%}
        {%- set content = content + (calls if content is string else [{'type': 'text', 'text': calls}]) -%}
    {%- endif -%}
    {%- set turns.all = turns.all + [{'role': role, 'content': content}] -%}
{%- endfor -%}
{%- set messages = turns.all -%}
{%- set tools = none -%}
"""
"""Before the model's own chat template: observations are user turns, and no tool stands in the system prompt."""
CODE = r"(?:<code>\s*```(?:(?!</?code>).)*+(?<=```\s*)</code>|<tool_call>(?:(?!</?tool_call>).)*+</tool_call>)"
"""How code stands in a turn, in any protocol."""


class DarkroomEnvironment:
    """One rollout at a time; TRL makes every public method but ``reset`` a tool."""

    def __init__(self) -> None:
        self._name = ""

    def reset(self, sample_id: str, **_: Any) -> None:
        """Opens an episode of the row; the prompt holds its conversation."""
        self._close()
        self._score: Mapping[str, Any] | None = None
        self._error: httpx.HTTPError | None = None
        self._done = False
        episode = _request("POST", "/episodes", {"row": sample_id, "seed": secrets.randbelow(2**31)})
        self._name = f"/episodes/{episode['episode']}"

    def turn(self, text: str) -> list[dict[str, Any]]:
        """
        Runs the code of a turn.

        Args:
            text: The turn.
        """
        try:
            result = self._step(text, finished=True)
        except httpx.HTTPError as error:  # TRL would tell the model
            self._error = error
            result = {"done": True}
        if result["done"]:
            return [{"type": "text", "text": "The rollout is over."}]
        return [_part(part, result["images"]) for part in result["parts"]]

    def _step(self, text: str, *, finished: bool) -> dict[str, Any]:
        result: dict[str, Any] = {"done": True}
        if not self._done:
            result = _request("POST", f"{self._name}/step", {"text": text, "finished": finished})
            self._done, self._score = result["done"], result.get("score")
        return result

    def _finished(self, text: str, finished: bool) -> float | None:
        """The reward after the last turn. Raises ``ValueError`` for a method that compares groups."""
        if self._error is not None:
            raise self._error
        if not self._step(text, finished=finished)["done"]:
            self._step("", finished=False)
        self._close()
        if self._score is None:
            raise ValueError(f"the method of the service at {URL} compares groups: serve another one")
        reward: float | None = self._score["reward"]
        return reward

    def _close(self) -> None:
        if self._name:
            _request("DELETE", self._name)
        self._name = ""


class DarkroomGRPOTrainer(GRPOTrainer):
    """TRL's own, which also takes prompts with and without images in one batch."""

    def _tokenize_prompts(self, prompts: list[Any]) -> tuple[Any, Any, Any]:
        ids, images, fields = super()._tokenize_prompts(prompts)
        return ids, None if images is None else [prompt_images or [] for prompt_images in images], fields


def arguments(processor: Any) -> dict[str, Any]:
    """Arguments of a trainer beside model and ``args``. Sets the chat template and response template of ``processor``.

    Raises ``httpx.HTTPError`` without the service.
    """
    rows, tokenizer = _request("GET", "/rows"), processor.tokenizer
    empty = [{"role": "user", "content": [{"type": "text", "text": ""}]}]
    opened = processor.apply_chat_template(empty), processor.apply_chat_template(empty, add_generation_prompt=True)
    call = {"type": "function", "function": {"name": "turn", "arguments": {"text": "{text}"}}}
    end = {"close_pattern": re.escape(tokenizer.eos_token) + r"\s*"}
    tokenizer.response_template = {
        "defaults": {"role": "assistant"},
        "start_anchor": opened[1].removeprefix(opened[0]),
        "fields": {
            "tool_calls": {**end, "open_pattern": rf"\A(?P<text>.*?{CODE})", "repeats": True, "transform": call},
            "content": end,
        },
    }
    processor.chat_template = PROLOGUE + processor.chat_template
    return {
        "processing_class": processor,
        "environment_factory": DarkroomEnvironment,
        "reward_funcs": functools.partial(reward, end_of_turn=tokenizer.eos_token_id),
        "train_dataset": Dataset.from_dict({"sample_id": rows["ids"]}).with_transform(_asked),
    }


def max_rounds() -> int:
    """Code executions of a rollout that the service allows."""
    return int(_request("GET", "/rows")["max_rounds"])


def reward(
    completions: Sequence[Any],
    completion_ids: Sequence[Sequence[int]],
    environments: Sequence[DarkroomEnvironment],
    end_of_turn: int,
    **_: Any,
) -> list[float | None]:
    """The service's; None of a broken rollout.

    Raises ``httpx.HTTPError`` where the service can execute or judge nothing.
    """
    finished = [ids[-1] == end_of_turn for ids in completion_ids]
    with ThreadPoolExecutor(16) as threads:
        return list(threads.map(DarkroomEnvironment._finished, environments, map(_last_turn, completions), finished))


def _last_turn(completion: Sequence[Mapping[str, Any]]) -> str:
    """Its text: a turn with code behind the last round is a call that TRL does not make."""
    last = completion[-1]
    if last["role"] != "assistant":
        return ""
    calls = [call["function"]["arguments"]["text"] for call in last.get("tool_calls") or ()]
    return "".join([*calls, last["content"]])


def _asked(batch: Mapping[str, list[str]]) -> dict[str, list[Any]]:
    prompts = [
        [{**message, "content": list(map(_part, message["content"]))} for message in _opened(row)["messages"]]
        for row in batch["sample_id"]
    ]
    return {"sample_id": batch["sample_id"], "prompt": prompts}


@functools.lru_cache(maxsize=16)
def _opened(row: str) -> dict[str, Any]:
    """An episode of the row, ended again: its conversation."""
    episode: dict[str, Any] = _request("POST", "/episodes", {"row": row})
    _request("DELETE", f"/episodes/{episode['episode']}")
    return episode


def _part(part: Mapping[str, Any], images: Sequence[str] = ()) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    data = part["image_url"]["url"].partition(",")[2] if "image_url" in part else images[part["image"]]
    return {"type": "image", "image": Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")}


def _request(method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """The service's answer, None without one; waits while it has no room. Raises ``httpx.HTTPStatusError``."""
    http = _client(os.getpid())
    while (answer := http.request(method, path, json=body)).status_code == httpx.codes.TOO_MANY_REQUESTS:
        time.sleep(float(answer.headers.get("Retry-After", 1)))
    if answer.is_error:
        raise httpx.HTTPStatusError(f"{method} {URL}{path}: {answer.text}", request=answer.request, response=answer)
    return answer.json() if answer.content else None


@functools.lru_cache(maxsize=1)
def _client(_: int) -> httpx.Client:
    """One for each process, which its connections belong to."""
    headers = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}
    return httpx.Client(base_url=URL, headers=headers, timeout=None)
