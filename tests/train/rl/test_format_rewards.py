"""What is a rollout in the form of its protocol."""

import pytest

from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.train.rl.rewards import formatted

CROP = '{"name": "crop_image_normalized", "arguments": {"bbox_2d": [0.1, 0.2, 0.3, 0.4], "target_image": 1}}'
CALL = f"<tool_call>\n{CROP}\n</tool_call>\n"


@pytest.mark.parametrize(
    ("text", "well"),
    [
        ("<think>I look.</think>\n<answer>red</answer>", 1.0),
        ("<think>a\n<code>\n```python\nx\n```\n</code>\nb</think>\n<answer>red</answer>", 1.0),
        ("<think>I look.</think><answer></answer>", 0.0),
        ("I look.</think>\n<answer>red</answer>", 0.0),
        ("<think>I look.\n<answer>red</answer>", 0.0),
        ("<think>a</think>\n<answer>red</answer>\n<answer>blue</answer>", 0.0),
        ("<think>a</think>\n<answer>red</answer> and more", 0.0),
        ("<think>a\n<code>\nx\n</code>\nb</think>\n<answer>red</answer>", 0.0),
        ("<think>a\n<code>\n```python\nx\n```\n</code>\n", 0.0),
        ("<think>a\n<code>\n```python\nx\n```\nb</think>\n<answer>red</answer>", 0.0),
        ("<think>a<sandbox_output>42</sandbox_output></think>\n<answer>42</answer>", 0.0),
        ("", 0.0),
    ],
)
def test_thymes_form_is_one_thought_and_one_answer(text, well):
    assert formatted(text) == well


@pytest.mark.parametrize(
    ("text", "well"),
    [
        ("I look.\n<answer>\n\\boxed{42}\n</answer>", 1.0),
        ("I look.\n<answer>\\boxed{42}</answer>\n", 1.0),
        ("I crop.\n<code>\nprint(1)\n</code>\nIt says 42.\n<answer>\n\\boxed{42}\n</answer>", 1.0),
        ("I look.\n<answer>42</answer>", 0.0),
        ("I look.\n<answer>\\boxed{}</answer>", 0.0),
        ("I look.\n<answer>\\boxed{1} or \\boxed{2}</answer>", 0.0),
        ("I look.\n<answer>\\boxed{42}</answer> I think.", 0.0),
        ("I crop.\n<code>\n\n</code>\nx\n<answer>\\boxed{42}</answer>", 0.0),
        ("<interpreter>42</interpreter><answer>\\boxed{42}</answer>", 0.0),
        ("\\boxed{42}", 0.0),
    ],
)
def test_pyvisions_form_is_a_box_in_an_answer(text, well):
    assert formatted(text, protocol="pyvision") == well


@pytest.mark.parametrize(
    ("text", "well"),
    [
        ("I look.\n\\boxed{42}", 1.0),
        (f"I zoom in.\n{CALL}It says 42.\n\\boxed{{42}}", 1.0),
        (f"<think>I zoom in.\n{CALL}It says 42.</think><answer>\\boxed{{42}}</answer>", 1.0),
        (f"<think>I zoom in.\n{CALL}It says 42.\n\\boxed{{42}}", 0.0),
        ("<answer>\\boxed{42}</answer></think>", 0.0),
        ("<think><answer>\\boxed{42}</think></answer>", 0.0),
        ("I zoom in.\n<tool_call>\n{}\n</tool_call>\n\\boxed{42}", 0.0),
        (f"{CALL}{CALL}", 0.0),
        ("<tool_response>42</tool_response>\\boxed{42}", 0.0),
        ("<answer>42</answer>", 0.0),
    ],
)
def test_a_tool_callers_form_is_calls_and_a_box(text, well):
    assert formatted(text, protocol="tool_call") == well


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_a_protocol_writes_is_formatted(name):
    protocol = PROTOCOLS[name]
    rounds = [
        protocol.write_round("I look.", "print(6 * 7)", first=True),
        protocol.write_round("Hm.", "x", first=False),
    ]
    text = "\n".join([*rounds, protocol.write_answer("It says 42.", "42", first=False)])
    assert formatted(text, protocol=name) == 1.0
    assert formatted("\n".join(rounds), protocol=name) == 0.0
