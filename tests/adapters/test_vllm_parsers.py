"""A real vLLM with Qwen3's reasoning parser and a parser of tool calls: the fields that this version really sends.

The model knows one text by heart, a thought and a call, as Qwen3 writes them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
import torch

from darkroom.pipelines.generation.rollout import parse_turn
from darkroom.pipelines.models.messages import message
from darkroom.pipelines.models.policies import Completion, OpenAIPolicy
from darkroom.pipelines.models.policies.policy import CompletionRequest
from darkroom.pipelines.models.policies.settings import Endpoint
from darkroom.pipelines.models.protocols import ToolCall
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records.samples import bare_sample
from darkroom.pipelines.storage.images import ImageStore
from darkroom.train import tiny
from tests.adapters.vllm_server import Server
from tests.ports import free_port

THOUGHT = "The sign is too small to read, so I zoom in."
CALL = {"name": "crop_image_normalized", "arguments": {"bbox_2d": [0.1, 0.2, 0.3, 0.4], "target_image": 1}}
TEXT = f"<think>\n{THOUGHT}\n</think>\n\n<tool_call>\n{json.dumps(CALL)}\n</tool_call>"
CODE = "crop_image_normalized(bbox_2d=[0.1, 0.2, 0.3, 0.4], target_image=1)"
MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
QUESTION = "What does the sign say?"
TOOLS = [{"type": "function", "function": {"name": "crop_image_normalized", "parameters": {"type": "object"}}}]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained on its one text for some seconds, until it writes it."""
    from transformers import AutoModelForImageTextToText, AutoTokenizer

    folder = tmp_path_factory.mktemp("model") / "parrot"
    tiny.build(folder, texts=[TEXT] * 4)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForImageTextToText.from_pretrained(folder)
    tokenizer.add_tokens(MARKS)
    model.resize_token_embeddings(len(tokenizer))
    opening = [{"role": "user", "content": QUESTION}]
    prompt = tokenizer.apply_chat_template(
        opening, chat_template=(folder / "chat_template.jinja").read_text(), add_generation_prompt=True, tokenize=False
    )
    start, text = (tokenizer(part, add_special_tokens=False)["input_ids"] for part in (prompt, TEXT + "<|im_end|>"))
    ids, labels = torch.tensor([start + text]), torch.tensor([[-100] * len(start) + text])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(300):
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss.item() < 0.01
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def server(checkpoint: Path) -> Iterator[Server]:
    parsers = ("--reasoning-parser", "qwen3", "--enable-auto-tool-choice", "--tool-call-parser", "hermes")
    running = Server(checkpoint.parent, checkpoint, free_port(), words=parsers)
    try:
        running.start()
        yield running
    finally:
        running.stop()


def asked(server: Server, store: Path, **settings: Any) -> Completion:
    """The policy's turn about the one question."""
    sample = bare_sample("s", QUESTION)
    task = Task("t", "figure", sample, (), {}, (), 7)
    request = CompletionRequest((message("user", QUESTION),), (), 7, task)

    async def call() -> Completion:
        endpoint = Endpoint(server.url, str(server.checkpoint), temperature=0.0, max_tokens=200, **settings)
        policy = OpenAIPolicy(endpoint, ImageStore(str(store)))
        try:
            (turn,) = await policy.sample(request, 1)
            return turn
        finally:
            await policy.close()

    return asyncio.run(call())


def message_of(server: Server, **fields: Any) -> dict[str, Any]:
    """The message as the server sends it."""
    with openai.OpenAI(base_url=server.url, api_key="none", timeout=120) as client:
        answer = client.chat.completions.create(
            model=str(server.checkpoint),
            messages=[{"role": "user", "content": QUESTION}],
            temperature=0,
            max_tokens=200,
            **fields,
        )
    return answer.choices[0].message.model_dump()


def test_the_thought_comes_in_a_field_of_its_own_and_is_read(server: Server, tmp_path: Path) -> None:
    sent = message_of(server)
    assert sent["reasoning"].strip() == THOUGHT, sent
    assert "<think>" not in (sent["content"] or "")
    turn = parse_turn(asked(server, tmp_path), ToolCall())
    assert (turn.thought, turn.code) == (THOUGHT, CODE)


def test_a_call_that_the_server_took_out_of_the_text_is_read(server: Server, tmp_path: Path) -> None:
    sent = message_of(server, tools=TOOLS)
    assert json.loads(sent["tool_calls"][0]["function"]["arguments"]) == CALL["arguments"], sent
    assert not (sent["content"] or "").strip()
    turn = parse_turn(asked(server, tmp_path, extra_body={"tools": TOOLS}), ToolCall())
    assert (turn.thought, turn.code) == (THOUGHT, CODE)
