"""Calls in the spellings of real models: read where they have one reading, and recorded as the model wrote them."""

import json

import pytest

from darkroom.pipelines.models.protocols import Malformed, ParsedTurn, ToolCall
from darkroom.pipelines.models.protocols.call_spellings import spelled_call
from darkroom.train.rl.rewards import formatted

TOOL_CALL = ToolCall()
LINE = "crop_image_normalized(bbox_2d=[0.1, 0.2, 0.3, 0.4], target_image=1)"
BOX, NAME = "[0.1, 0.2, 0.3, 0.4]", "crop_image_normalized"
PLAIN = f'{{"name": "{NAME}", "arguments": {{"bbox_2d": {BOX}, "target_image": 1}}}}'
SPELLINGS = {
    "Qwen3.5": f"<function={NAME}>\n<parameter=bbox_2d>\n{BOX}\n</parameter>\n<parameter=target_image>\n1\n"
    "</parameter>\n</function>",
    "arguments as a text": json.dumps({"name": NAME, "arguments": f'{{"bbox_2d": {BOX}, "target_image": 1}}'}),
    "a label": PLAIN.replace('"target_image"', '"label": "the sign", "target_image"'),
    "1.0 for 1": PLAIN.replace(": 1}", ": 1.0}"),
    "an image's number as a text": PLAIN.replace(": 1}", ': "1"}'),
    "a box as a text": PLAIN.replace(BOX, f'"{BOX}"'),
    "a box as a text without brackets": PLAIN.replace(BOX, '"0.1, 0.2, 0.3, 0.4"'),
    "sides as texts": PLAIN.replace(BOX, '["0.1", "0.2", "0.3", "0.4"]'),
    "a trailing comma": PLAIN.replace(": 1}", ": 1,}"),
    "single quotes": PLAIN.replace('"', "'"),
    "a brace too many": PLAIN + "}",
    "a missing brace": PLAIN[:-1],
    "a fence": f"```json\n{PLAIN}\n```",
    "another tool's name": PLAIN.replace(NAME, "crop_image"),
    "parameters": PLAIN.replace("arguments", "parameters"),
    "a function around it": f'{{"type": "function", "function": {PLAIN}}}',
    "a fence and a comma": f"```\n{PLAIN.replace(': 1}', ': 1,}')}\n```",
}


@pytest.mark.parametrize("call", SPELLINGS.values(), ids=SPELLINGS)
def test_a_call_is_read_and_recorded_in_the_protocols_own_spelling(call):
    turn = TOOL_CALL.parse(f"I zoom in.\n<tool_call>\n{call}\n</tool_call>")
    assert isinstance(turn, ParsedTurn)
    assert turn.code == LINE
    (edit,) = turn.mended
    assert (edit.before, edit.after) == (call, PLAIN)
    assert edit.kind.startswith("tool call: ")
    assert (
        TOOL_CALL.write_round(turn.thought, turn.code, first=True) == f"I zoom in.\n<tool_call>\n{PLAIN}\n</tool_call>"
    )


@pytest.mark.parametrize("call", SPELLINGS.values(), ids=SPELLINGS)
def test_training_rewards_only_the_form_that_is_asked_for(call):
    written = "<tool_call>\n{}\n</tool_call>\n\\boxed{{7}}"
    assert formatted(written.format(PLAIN), protocol="tool_call") == 1.0
    assert formatted(written.format(call), protocol="tool_call") == 0.0


@pytest.mark.parametrize(
    "call",
    [
        '{"name": "python", "arguments": {"code": "print(\'a\')\\nprint(2)"}}',
        "{'name': 'code_interpreter', 'arguments': {'code': \"print('a')\\nprint(2)\"}}",
        "<function=code_interpreter>\n<parameter=code>\nprint('a')\nprint(2)\n</parameter>\n</function>",
        '{"name": "code_interpreter", "arguments": "{\\"code\\": \\"print(\'a\')\\\\nprint(2)\\"}"}',
    ],
)
def test_a_program_stays_as_it_was_written(call):
    assert TOOL_CALL.parse(f"<tool_call>{call}</tool_call>").code == "print('a')\nprint(2)"


def test_calls_that_follow_one_another_run_in_order():
    second = PLAIN.replace("0.1", "0.15")
    text = f"Both.\n<tool_call>\n{PLAIN}\n</tool_call>\n<tool_call>\n{second}\n</tool_call>"
    turn = TOOL_CALL.parse(text)
    assert turn == ParsedTurn("Both.", code=f"{LINE}\n{LINE.replace('0.1,', '0.15,')}")
    assert TOOL_CALL.write_round(turn.thought, turn.code, first=True) == text
    stream = TOOL_CALL.stream()
    for character in text + "\nAnd then?":
        stream.feed(character)
    assert stream.ended
    assert stream.finish() == turn


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('{"name": "crop", "arguments": {"bbox_2d": [0, 0, 1, 1]}}', "arguments.target_image: Field required"),
        ('{"name": "crop", "arguments": {"bbox_2d": [[0, 0, 1, 1]], "target_image": 1}}', "arguments.bbox_2d"),
        ('{"name": "crop", "arguments": {"bbox_2d": [0, 0, 1, 1], "target_image": 1.5}}', "arguments.target_image"),
        ('{"name": "crop", "arguments": {"bbox_2d": "left half", "target_image": 1}}', "arguments.bbox_2d"),
        (
            '{"name": "crop", "arguments": {"bbox_2d": [0, 0, 1, 1], "target_image": 1, "rotate": 90}}',
            "arguments.rotate",
        ),
        ('{"name": "crop", "arguments": {}, "parameters": {}}', "arguments and parameters"),
        (PLAIN.replace(NAME, "image_zoom_in_tool"), "names neither"),
        ('{"name": "crop", "arguments": {}} and more', "not JSON"),
        ("crop(0, 0, 1, 1)", "not JSON"),
        ("{'name': 'crop', [1]: 2}", "not JSON"),
        ("{'name': 'crop', 'arguments': {}, 1: 2}", "the call has 1"),
        ("{'name': 'crop', 'arguments': {1: 2}}", "crop_image_normalized: arguments"),
        ("{'name': 'crop', 'arguments': {1, 2}}", "crop_image_normalized: arguments"),
        ("{'name': 'python', 'arguments': {'code': b'1'}}", "code_interpreter: arguments.code"),
        ("{'name': 'crop', 'arguments': {}}\nprint(1)", "not JSON"),
        ("<function=crop>zoom<parameter=bbox_2d>1</parameter>", "beside its parameters"),
        ("<function=crop><parameter=bbox_2d>1", "has no end"),
        ("<function=crop><parameter=a>1</parameter><parameter=a>2</parameter>", "stands twice"),
        ("<function=" * 50_000, "not JSON"),
        ("<function=crop>" + "<parameter=a>" * 50_000, "has no end"),
        ("{" * 100_000, "not JSON"),
        ("[" * 100_000 + "]" * 100_000, "not JSON"),
        ("```json\n" + "`" * 100_000, "not JSON"),
    ],
)
def test_what_has_no_single_reading_is_malformed(call, said):
    turn = TOOL_CALL.parse(f"<tool_call>{call}</tool_call>")
    assert isinstance(turn, Malformed)
    assert said in turn.evidence


def test_a_call_as_it_should_be_is_not_mended():
    call = spelled_call(PLAIN)
    assert (call.name, call.mended) == (NAME, ())
