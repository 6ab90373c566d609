"""Answers as providers really send them: what was paid for is read, a warning names what a user should look into."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from darkroom.pipelines.generation.rollout import parse_turn
from darkroom.pipelines.models.policies.openai import is_same_model, read_answer, warn_of_oddities
from darkroom.pipelines.models.policies.policy import PolicyError
from darkroom.pipelines.models.protocols import PROTOCOLS, ParsedTurn
from darkroom.pipelines.records.reject_reasons import RowError


def answer(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], **fields}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (["a", {"type": "text", "text": "b"}, {"type": "thinking", "thinking": "c"}, None], "ab"),
        ({"type": "text", "text": {"value": "a"}}, "a"),
        (7, "7"),
        ([[[[[["too deep"]]]]]], ""),
    ],
)
def test_content_of_any_form_is_a_text(content: Any, text: str) -> None:
    assert read_answer({"choices": [{"message": {"content": content}}]}, 1).choices[0].text == text


@pytest.mark.parametrize("count", [None, -1, "many", 1e999, 10**30, [3], float("nan")])
def test_a_count_that_is_none_is_no_count(count: Any) -> None:
    read = read_answer(answer(usage={"prompt_tokens": count, "completion_tokens": count}), 1)
    assert (read.choices[0].text, read.prompt_tokens, read.completion_tokens) == ("a", None, None)


@pytest.mark.parametrize("choices", [[], None, [None], [{"message": None}]])
def test_an_answer_that_was_withheld_and_paid_for_is_empty(choices: Any) -> None:
    (choice,) = read_answer({"choices": choices, "usage": {"completion_tokens": 3}}, 1).choices
    assert choice.text == ""
    with pytest.raises(PolicyError):
        read_answer({"choices": choices, "usage": {"completion_tokens": 0}}, 1)


@pytest.mark.parametrize(
    ("requested", "answering", "is_same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o-2024-08-06", "gpt-4o", True),
        ("gpt-4", "gpt-4-0613", True),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("gemini-2.5-pro", "models/gemini-2.5-pro-preview-04-17", True),
        ("Qwen/Qwen2.5-VL-72B-Instruct", "qwen2.5-vl-72b-instruct", True),
        ("openai/gpt-4o", "gpt-4o", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4", "gpt-4.1", False),
        ("Qwen/Qwen2.5-VL-72B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct", False),
    ],
)
def test_a_dated_name_is_the_same_model(requested: str, answering: str, is_same: bool) -> None:
    assert is_same_model(requested, answering) == is_same


def test_another_model_and_a_missing_count_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        read = read_answer(answer(model="small-model"), 1)
        warn_of_oddities(read, model="large-model", endpoint="http://127.0.0.1:1/answers")
    other, uncounted = caplog.messages
    assert "'small-model'" in other
    assert "'large-model'" in other
    assert "tokens" in uncounted


@pytest.mark.parametrize("arguments", ['{"code": "print(\'</tool_call>\')"}', {"code": "print('</tool_call>')"}])
def test_calls_beside_the_text_are_read_as_calls_in_it(arguments):
    call = {"id": "1", "type": "function", "function": {"name": "code_interpreter", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call, call]}
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": {"completion_tokens": 9}}
    turn = parse_turn(read_answer(body, 1).choices[0], PROTOCOLS["tool_call"])
    assert turn == ParsedTurn("", code="print('</tool_call>')\nprint('</tool_call>')")


@pytest.mark.parametrize("calls", [7, [7], [{"function": 7}], [{"function": {"name": None, "arguments": "{"}}]])
def test_calls_that_are_none_say_so(calls):
    body = {"choices": [{"message": {"content": None, "tool_calls": calls}}], "usage": {"completion_tokens": 9}}
    with pytest.raises(RowError, match="malformed_turn"):
        parse_turn(read_answer(body, 1).choices[0], PROTOCOLS["tool_call"])
