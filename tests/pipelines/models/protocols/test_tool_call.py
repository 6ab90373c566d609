"""Tool calls: JSON in, code in the record, the same JSON out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.models.messages import ImagePart, Text
from darkroom.pipelines.models.protocols import Malformed, ParsedTurn, ToolCall
from darkroom.pipelines.records import ImageRef, Observation, VideoRef
from darkroom.pipelines.records.reject_reasons import Reason, RowError

TOOL_CALL = ToolCall()
IMAGE = ImageRef("a" * 64, 2400, 1600, "RGB", "PNG")
VIDEO = VideoRef("b" * 64, "mp4", 1280, 720, 300, 25.0)
LINE = "crop_image_normalized(bbox_2d=[0.1, 0.2, 0.3, 0.4], target_image=1)"


def call(name: str, **arguments: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


CODE = call("code_interpreter", code="print(1)")
CROP = call("crop_image_normalized", bbox_2d=[0.1, 0.2, 0.3, 0.4], target_image=1)


def refusal(text: str) -> str:
    parsed = TOOL_CALL.parse(text)
    assert isinstance(parsed, Malformed)
    return parsed.evidence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "neither <tool_call> nor \\boxed"),
        ("I wonder", "neither <tool_call> nor \\boxed"),
        ("The answer is 42.", "neither <tool_call> nor \\boxed"),
        ("So \\boxed{1} or \\boxed{2}", "2 different boxed answers"),
        ("So \\boxed{ }", "answer is empty"),
        ("So \\boxed{\\frac{1}{2}", "is never closed"),
        ("So \\boxed{a\\ }", "ends in a backslash"),
        (f"a</tool_call>{CODE}", "</tool_call> without its partner"),
        ("a</tool_call>\\boxed{1}", "</tool_call> without its partner"),
        (f"a<tool_response>7</tool_response>{CODE}", "marker of its own"),
        ("a</Tool_Response>\\boxed{7}", "marker of its own"),
        ("<tool_call>print(1)</tool_call>", "is not JSON"),
        ('<tool_call>{"name": "code_interpreter"', "arguments: Input should be"),
        ('<tool_call>{"name": "code_interpreter", "arguments": {"code": "print(1', "is not JSON"),
        ('<tool_call>{"name": "code_interpreter", "arguments": {"code": "print("1")"}}</tool_call>', "is not JSON"),
        ("<tool_call>" + "[" * 100_000, "is not JSON"),
        ("<tool_call>[1]</tool_call>", "has no name"),
        ('<tool_call>{"name": 7, "arguments": {}}</tool_call>', "has no name"),
        ('<tool_call>{"name": "crop", "arguments": {}, "box": 1}</tool_call>', "the call has box"),
        (call("web_search", query="cats"), "names neither"),
        (CODE * 17, "more than 16 calls"),
        (f"{CODE}{call('code_interpreter', code=7)}", "arguments.code: Input should be a valid string"),
        (call("code_interpreter"), "arguments.code: Field required"),
        (call("code_interpreter", code=7), "arguments.code: Input should be a valid string"),
        (call("code_interpreter", code=" "), "code is empty"),
        (call("code_interpreter", code="```bash\nls\n```"), "a fence that is not one ```python block"),
        (call("code_interpreter", code="1", language="R"), "arguments.language: Extra inputs"),
        (call("crop_image_normalized", bbox_2d=[0, 0, 1, 1]), "arguments.target_image: Field required"),
        (call("crop_image_normalized", bbox_2d=[0, 0, 1], target_image=1), "arguments.bbox_2d: List should have"),
        (call("crop_image_normalized", bbox_2d=[0, 0, 1, True], target_image=1), "arguments.bbox_2d.3"),
        (call("crop_image_normalized", bbox_2d=[0, 0, 1, float("nan")], target_image=1), "arguments.bbox_2d.3"),
        (call("crop_image_normalized", bbox_2d=[0, 0, 1, 10**400], target_image=1), "arguments.bbox_2d.3"),
    ],
)
def test_a_turn_that_is_neither_a_call_nor_an_answer_is_malformed(text, said):
    assert said in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        f"Too small.\n{CODE}",
        f"Too small.\n{CODE}".removesuffix("</tool_call>"),  # a stop string that was cut off
        f"Too small.\n{CODE}".replace("tool_call", "Tool_Call"),
        f"Too small.\n{CODE}".replace("\n", "\r\n"),
        f"Too small.{CODE}\n<tool_response>\n1\n</tool_response>\nSo \\boxed{{1}}",
        f"Too small.{CODE}Now I wait.{CODE}",
        "Too small.\n" + call("code_interpreter", code="```python\nprint(1)\n```"),
    ],
)
def test_a_call_counts_up_to_its_end(text):
    assert TOOL_CALL.parse(text) == ParsedTurn("Too small.", code="print(1)")


def test_a_box_before_a_call_is_no_answer():
    parsed = TOOL_CALL.parse(f"Perhaps \\boxed{{7}}, but I look.\n{CODE}")
    assert parsed == ParsedTurn("Perhaps \\boxed{7}, but I look.", code="print(1)")


def test_line_ends_may_stand_in_a_string_as_they_are():
    text = '<tool_call>{"name": "code_interpreter", "arguments": {"code": "x = 1\r\nprint(x)"}}</tool_call>'
    assert TOOL_CALL.parse(text) == ParsedTurn("", code="x = 1\nprint(x)")


@pytest.mark.parametrize(
    "text",
    [
        "It says 42.\n\\boxed{42}",
        "It says 42. \\boxed {42}\r\n",
        "It says 42. $\\boxed{42}$.",
        "It says 42. **\\boxed{42}**",
        "It says 42. \\[\n\\boxed{42}\n\\]",
        "It says 42. \\boxed{42} I am sure.",
    ],
)
def test_the_box_is_the_answer(text):
    assert TOOL_CALL.parse(text) == ParsedTurn("It says 42.", answer="42")


def test_the_same_box_twice_is_one_answer():
    assert TOOL_CALL.parse("So \\boxed{42}. Finally: \\boxed{42}").answer == "42"


def test_a_box_without_anything_in_it_is_only_mentioned():
    assert TOOL_CALL.parse("I answer in \\boxed{}: \\boxed{42}").answer == "42"


def test_a_crop_is_a_line_that_can_be_run():
    assert TOOL_CALL.parse(f"I zoom in.\n{CROP}") == ParsedTurn("I zoom in.", code=LINE)


def test_the_line_of_a_crop_is_written_as_that_call():
    assert TOOL_CALL.write_round("I zoom in.", LINE, first=True) == f"I zoom in.\n{CROP}"


@pytest.mark.parametrize(
    "code", [LINE.replace("0.1", "0.10"), LINE + "\n", f"x = 1\n{LINE}", LINE.replace("=1)", "=01)")]
)
def test_any_other_spelling_is_a_program(code):
    assert '"code_interpreter"' in TOOL_CALL.write_round("I zoom in.", code, first=True)


NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(-(2.0**53), 2.0**53))


@given(st.lists(NUMBERS, min_size=4, max_size=4), st.integers(-9, 99))
def test_any_crop_is_written_as_it_was(bbox, target):
    text = call("crop_image_normalized", bbox_2d=bbox, target_image=target)
    assert TOOL_CALL.write_round("", TOOL_CALL.parse(text).code, first=True) == text


def test_tags_in_a_program_end_no_call():
    code = "print('</tool_call><tool_response>')"
    text = TOOL_CALL.write_round("So.", code, first=True)
    assert text.count("tool_response>") == text.count("\\u003ctool_response>")
    assert TOOL_CALL.parse(text).code == code


def test_an_observation_has_text_before_images():
    wrapped = TOOL_CALL.wrap(Observation("ok", "image 2: 30x20 pixels\n", images=(IMAGE,)))
    assert wrapped == (
        Text("<tool_response>\nimage 2: 30x20 pixels\n"),
        ImagePart(IMAGE),
        Text("\n</tool_response>"),
    )


@pytest.mark.parametrize(
    ("images", "mode", "offered", "asked"),
    [
        ((IMAGE,), "free", "crop_image_normalized", "If it does, zoom in"),
        ((IMAGE,), "forced", "crop_image_normalized", "you must zoom in"),
        ((IMAGE,), "forbidden", "", "see in the image as it is"),
        ((), "free", "code_interpreter", "if not, don't"),
        ((), "forced", "code_interpreter", "you must run a program"),
        ((), "forbidden", "", "work out in words"),
    ],
)
def test_the_opening_offers_the_tool_of_its_mode(images, mode, offered, asked):
    system, user = TOOL_CALL.opening("What does it say?", images, mode=mode)
    names = [name for name in ("crop_image_normalized", "code_interpreter") if name in system.parts[0].text]
    assert names == ([offered] if offered else [])
    assert ("<tool_call>" in system.parts[0].text) == bool(offered)
    assert user.parts[:-1] == tuple(map(ImagePart, images))
    assert user.parts[-1].text.startswith("What does it say?")
    assert asked in user.parts[-1].text
    assert ("2400x1600" in user.parts[-1].text) == bool(images)


def test_the_tool_in_the_prompt_is_json():
    system = TOOL_CALL.opening("Where?", (IMAGE,))[0].parts[0].text
    tool = json.loads(system.split("<tools>\n")[1].split("\n</tools>")[0])
    assert tool["function"]["parameters"]["required"] == ["bbox_2d", "target_image"]


def test_it_shows_no_videos():
    with pytest.raises(RowError, match="tool_call shows no videos") as caught:
        TOOL_CALL.opening("Who wins?", (), (VIDEO,))
    assert caught.value.reason is Reason.NOT_APPLICABLE
