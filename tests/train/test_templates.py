import pytest

from train.conversations import conversation, opening
from train.grpo import RESPONSE_TEMPLATE
from train.templates import template


@pytest.mark.parametrize("layout", ["turns", "inline"])
@pytest.mark.parametrize("ask", [True, False])
def test_the_sft_template_renders_the_bytes_of_the_stock_template(rows, processor, layout, ask):
    stock = processor.chat_template
    for row in rows:
        said = conversation(row, layout=layout).messages
        expected = processor.apply_chat_template(said, chat_template=stock, add_generation_prompt=ask)
        assert processor.apply_chat_template(said, chat_template=template("sft"), add_generation_prompt=ask) == expected


def test_a_conversation_without_a_system_prompt_gets_the_stock_one(processor):
    said = [{"role": "user", "content": "hello"}]
    for name in ("sft", "grpo"):
        rendered = processor.apply_chat_template(said, chat_template=template(name))
        assert rendered == processor.apply_chat_template(said)


def test_the_grpo_template_renders_the_bytes_of_the_stock_template_where_there_is_no_tool(rows, processor):
    for row in rows:
        said = conversation(row, layout="turns").messages
        rendered = processor.apply_chat_template(said, chat_template=template("grpo"))
        assert rendered == processor.apply_chat_template(said)


def test_a_rollout_reads_as_the_layout_of_turns(rows, processor):
    row = rows[0]
    sft = conversation(row, layout="turns").messages
    call = {"type": "function", "function": {"name": "run_python", "arguments": {"code": row["rounds"][0]["code"]}}}
    thought = "<think>" + row["rounds"][0]["thought"] + "\n"
    rollout = [
        *opening(row),
        {"role": "assistant", "content": [{"type": "text", "text": thought}], "tool_calls": [call]},
        {"role": "tool", "name": "run_python", "content": sft[3]["content"]},
        sft[4],
    ]
    rendered = processor.apply_chat_template(rollout, chat_template=template("grpo"))
    assert rendered == processor.apply_chat_template(sft)


def test_a_code_block_is_parsed_as_a_call_of_the_sandbox(tiny):
    from trl.chat_template_utils import parse_response

    from train.models import load_processor

    tokenizer = load_processor(tiny).tokenizer
    tokenizer.response_template = RESPONSE_TEMPLATE
    said = "<think>I look.\n<code>\n```python\nprint(1)\nprint(2)\n```\n</code><|im_end|>"
    prefix = tokenizer("<|im_start|>assistant\n")["input_ids"]
    parsed = parse_response(tokenizer, tokenizer(said)["input_ids"], prefix=prefix)
    assert parsed["tool_calls"][0]["function"] == {"name": "run_python", "arguments": {"code": "print(1)\nprint(2)"}}
