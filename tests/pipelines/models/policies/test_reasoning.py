"""Where engines and gateways put what a model thought: every place is read into the thought of its turn."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from darkroom.pipelines.generation.rollout import parse_turn
from darkroom.pipelines.models.policies.openai import read_answer
from darkroom.pipelines.models.policies.policy import Completion
from darkroom.pipelines.models.policies.recorded import RecordedPolicy
from darkroom.pipelines.models.protocols import PROTOCOLS, ParsedTurn, render
from darkroom.pipelines.records import Usage
from darkroom.pipelines.records.reject_reasons import Reason, RowError

THOUGHT = "The sign is too small to read."
TURNS = {
    "thyme": "<code>\n```python\nprint(1)\n```\n</code>",
    "pyvision": "<code>\nprint(1)\n</code>",
    "tool_call": '<tool_call>\n{"name": "code_interpreter", "arguments": {"code": "print(1)"}}\n</tool_call>',
}
ANSWERS = {"thyme": "<answer>42</answer>", "pyvision": "<answer>42</answer>", "tool_call": r"\boxed{42}"}


def message(name: str, said: str) -> dict[str, Any]:
    """The message in which an engine or gateway sends the thought and what was said after it."""
    block = {"type": "thinking", "thinking": THOUGHT, "signature": "x"}
    text, final = {"type": "text", "text": said}, "<|start|>assistant<|channel|>final<|message|>"
    messages: dict[str, dict[str, Any]] = {
        "vLLM": {"content": said, "reasoning": THOUGHT},
        "SGLang, DeepSeek, vLLM before 0.12": {"content": said, "reasoning_content": THOUGHT},
        "vLLM with both": {"content": said, "reasoning": THOUGHT, "reasoning_content": THOUGHT},
        "OpenRouter": {"content": said, "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT}]},
        "OpenRouter's summary": {
            "content": said,
            "reasoning": None,
            "reasoning_details": [{"type": "reasoning.summary", "summary": THOUGHT}],
        },
        "LiteLLM": {"content": said, "thinking_blocks": [block]},
        "Anthropic": {"content": [block, text]},
        "Mistral": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}, text]},
        "parts called reasoning": {"content": [{"type": "reasoning", "text": THOUGHT}, text]},
        "closed": {"content": f"<think>\n{THOUGHT}\n</think>\n\n{said}"},
        "only closing": {"content": f"{THOUGHT}\n</think>\n\n{said}"},
        "opened and never closed": {"content": f"<think>{THOUGHT}\n{said}"},
        "Ollama": {"content": said, "thinking": THOUGHT},
        "Kimi": {"content": f"◁think▷{THOUGHT}◁/think▷{said}"},
        "Magistral": {"content": f"[THINK]{THOUGHT}[/THINK]{said}"},
        "Seed-OSS": {"content": f"<seed:think>{THOUGHT}</seed:think>{said}"},
        "Gemma": {"content": f"<thought>\n{THOUGHT}\n</thought>\n{said}"},
        "gpt-oss": {"content": f"<|channel|>analysis<|message|>{THOUGHT}<|end|>{final}{said}"},
        "code in the field": {"content": None, "reasoning": f"{THOUGHT}\n{said}"},
        "code in the field, no stop string": {"content": "", "reasoning_content": f"{THOUGHT}\n{said}\nIt printed 7."},
    }
    return messages[name]


PLACES = [
    "vLLM", "SGLang, DeepSeek, vLLM before 0.12", "vLLM with both", "OpenRouter", "OpenRouter's summary", "LiteLLM",
    "Anthropic", "Mistral", "parts called reasoning", "closed", "only closing", "opened and never closed",
    "Ollama", "Kimi", "Magistral", "Seed-OSS", "Gemma", "gpt-oss",
    "code in the field", "code in the field, no stop string",
]  # fmt: skip


def completion(message: dict[str, Any]) -> Completion:
    (choice,) = read_answer({"choices": [{"message": message, "finish_reason": "stop"}]}, 1).choices
    return choice


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", TURNS)
def test_the_thought_of_a_turn_with_code_is_read(name: str, place: str) -> None:
    turn = parse_turn(completion(message(place, TURNS[name])), PROTOCOLS[name])
    assert (turn.thought, (turn.code or "").strip()) == (THOUGHT, "print(1)")


@pytest.mark.parametrize("place", PLACES[:-1])
@pytest.mark.parametrize("name", ANSWERS)
def test_the_thought_of_an_answer_is_read(name: str, place: str) -> None:
    assert parse_turn(completion(message(place, ANSWERS[name])), PROTOCOLS[name]) == ParsedTurn(THOUGHT, answer="42")


@pytest.mark.parametrize("name", TURNS)
def test_what_is_said_besides_follows_the_thought(name: str) -> None:
    turn = parse_turn(completion({"content": f"I look.\n{TURNS[name]}", "reasoning": THOUGHT}), PROTOCOLS[name])
    assert turn.thought == f"{THOUGHT}\n\nI look."


@pytest.mark.parametrize("name", TURNS)
def test_tags_in_a_thought_lose_their_brackets_and_the_code_after_it_counts(name: str) -> None:
    protocol = PROTOCOLS[name]
    thought = f"I write <{protocol.container}>, then read <{protocol.marker}>."
    turn = parse_turn(completion({"content": TURNS[name], "reasoning": thought}), protocol)
    assert (turn.thought, (turn.code or "").strip()) == (
        f"I write {protocol.container}, then read {protocol.marker}.",
        "print(1)",
    )
    assert protocol.parse(render(protocol, turn, first=True)) == turn


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("form", ["field", "think"])
def test_an_answer_made_up_after_code_in_the_thought_is_not_read(name: str, form: str) -> None:
    thought = f"{THOUGHT}\n{TURNS[name]}\nIt printed 42."
    apart = {"content": ANSWERS[name], "reasoning": thought}
    said = apart if form == "field" else {"content": f"<think>{thought}</think>{ANSWERS[name]}"}
    turn = parse_turn(completion(said), PROTOCOLS[name])
    assert (turn.thought, turn.answer) == (THOUGHT, None)


@pytest.mark.parametrize("name", TURNS)
def test_a_budget_spent_in_thinking_says_so(name: str) -> None:
    cut = Completion("", finished=False, usage=Usage(1, 9, 2048), reasoning=THOUGHT)
    with pytest.raises(RowError, match="none of its 2048 tokens is text: they went into reasoning") as caught:
        parse_turn(cut, PROTOCOLS[name])
    assert caught.value.reason is Reason.TRUNCATED_TURN


def test_a_vote_is_what_was_said_not_what_was_thought() -> None:
    read = completion({"content": '<think>{"answer": "no"}?</think>{"answer": "yes"}'})
    assert (read.text, read.reasoning) == ('{"answer": "yes"}', '{"answer": "no"}?')


def test_a_thought_is_on_the_ledger_and_older_answers_have_none(chat, open_policy, turn, ledger) -> None:
    body = {"choices": [{"message": message("vLLM", TURNS["thyme"]), "finish_reason": "stop"}]}

    async def twice() -> tuple[list[Completion], int]:
        answers = chat.saying(lambda: web.json_response(body))
        async with chat.serving(answers) as endpoint, open_policy(endpoint.url) as policy:
            return [await RecordedPolicy(policy, ledger).write(turn()) for _ in range(2)], len(endpoint.asked)

    (first, second), n_asked = asyncio.run(twice())
    assert (first, n_asked, second.reasoning) == (second, 1, THOUGHT)
    old = Completion(f"<think>{TURNS['pyvision']}")
    assert parse_turn(old, PROTOCOLS["pyvision"]).thought == "<think>"  # the keys of what followed hold it
