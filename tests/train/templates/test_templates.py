import pytest

from darkroom.pipelines.publishing.layouts import turns as rendering
from darkroom.pipelines.publishing.layouts.trl import messages_of
from darkroom.train.examples.encoding import conversation
from darkroom.train.models.loading import load_processor, template
from darkroom.train.rl.rollouts.environment import RESPONSE_TEMPLATE

LAYOUTS = ["turns", "inline"]
SHOWN = "<|vision_start|><|image_pad|><|vision_end|>"


@pytest.fixture(scope="module")
def processors(tinies):
    return {name: load_processor(folder) for name, folder in tinies.items()}


@pytest.fixture(params=["qwen2_5_vl", "qwen3_vl"])
def kind(request):
    return request.param


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ask", [True, False])
@pytest.mark.parametrize("numbered", [True, False])
def test_the_sft_template_renders_the_bytes_of_the_stock_template(rows, processors, kind, layout, ask, numbered):
    render = processors[kind].apply_chat_template
    for row in rows:
        said = conversation(row, layout=layout)
        rendered = render(said, chat_template=template("sft", kind), add_generation_prompt=ask, add_vision_id=numbered)
        n_shown = sum(part["type"] == "image" for message in said for part in message["content"])
        assert rendered.count(SHOWN) == n_shown
        if kind == "qwen3_vl" and layout == "inline":  # its stock template drops the images of assistant turns
            said = [{**m, "content": [p for p in m["content"] if _is_stock(m, p)]} for m in said]
            rendered = render(
                said, chat_template=template("sft", kind), add_generation_prompt=ask, add_vision_id=numbered
            )
        assert rendered == render(said, add_generation_prompt=ask, add_vision_id=numbered)


def _is_stock(message, part):
    return message["role"] != "assistant" or part["type"] == "text"


@pytest.mark.parametrize("name", ["sft", "grpo"])
@pytest.mark.parametrize("content", ["hello", [{"type": "text", "text": "hello"}]])
def test_a_conversation_without_a_system_turn_gets_the_stock_one_or_none(processors, kind, name, content):
    said = [{"role": "user", "content": content}, {"role": "assistant", "content": content}]
    rendered = processors[kind].apply_chat_template(said, chat_template=template(name, kind))
    assert rendered == processors[kind].apply_chat_template(said)
    assert ("You are a helpful assistant." in rendered) == (kind == "qwen2_5_vl")


def test_the_grpo_template_renders_the_bytes_of_the_stock_template_where_there_is_no_tool(rows, processors, kind):
    for row in rows:
        said = conversation(row, layout="turns")
        rendered = processors[kind].apply_chat_template(said, chat_template=template("grpo", kind))
        assert rendered == processors[kind].apply_chat_template(said)


def test_trl_takes_the_grpo_template_for_one_with_tools(tinies, kind):
    from trl.chat_template_utils import supports_tool_calling

    processor = load_processor(tinies[kind])
    processor.chat_template = template("grpo", kind)
    assert supports_tool_calling(processor)


def test_a_rollout_reads_as_the_layout_of_turns(rows, processors, kind):
    row = rows[0]
    sft = conversation(row, layout="turns")
    call = {"type": "function", "function": {"name": "run_python", "arguments": {"code": row["rounds"][0]["code"]}}}
    thought = "<think>" + row["rounds"][0]["thought"] + "\n"
    rollout = [
        *messages_of(rendering.opening(row)),
        {"role": "assistant", "content": [{"type": "text", "text": thought}], "tool_calls": [call]},
        {"role": "tool", "name": "run_python", "content": sft[3]["content"]},
        sft[4],
    ]
    rendered = processors[kind].apply_chat_template(rollout, chat_template=template("grpo", kind))
    assert rendered == processors[kind].apply_chat_template(sft)


def test_a_code_block_is_parsed_as_a_call_of_the_sandbox(tiny):
    from trl.chat_template_utils import parse_response

    tokenizer = load_processor(tiny).tokenizer
    tokenizer.response_template = RESPONSE_TEMPLATE
    said = "<think>I look.\n<code>\n```python\nprint(1)\nprint(2)\n```\n</code><|im_end|>"
    prefix = tokenizer("<|im_start|>assistant\n")["input_ids"]
    parsed = parse_response(tokenizer, tokenizer(said)["input_ids"], prefix=prefix)
    assert parsed["tool_calls"][0]["function"] == {"name": "run_python", "arguments": {"code": "print(1)\nprint(2)"}}
