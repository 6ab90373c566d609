"""Texts that are hard on protocols: their tags, fences, braces and line ends, in any order."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = (
    *("<code>", "</code>", "<CODE>", "</Code>", "<answer>", "</answer>", "</ANSWER>", "<think>", "</think>"),
    *("<tool_call>", "</tool_call>", "<TOOL_CALL>", "<tool_response>", "</tool_response>"),
    *("<sandbox_output>", "</sandbox_output>", "<interpreter>", "</interpreter>"),
    *("```", "```python", "```py", "```bash", "~~~", "\\boxed{", "\\boxed", "{", "}", "\\", "\\{", "\\}", "$", "**"),
    *("\n", "\r\n", "\r", " ", "\t", "\u2028", "\x85", "\0", '"', "'", "\\n", "\\u003c", "<", ">", "</", "<th", "ink>"),
    *("print(1)", "x = 1", "42", "é", "数", "🦊", "\ud800", "NaN", "1e999", "-0.0", "0.1", "true", "null", "9" * 400),
    '{"name": "code_interpreter", "arguments": {"code": "print(1)"}}',
    '{"name": "crop_image_normalized", "arguments": {"bbox_2d": [0, 0.5, 1e-05, 1], "target_image": 1}}',
    '{"name": "crop_image_normalized", "arguments": {"bbox_2d": [-0.0, 2, 1e300, ',
    '<tool_call>{"name": "code_interpreter", "arguments": {"code": "print(1)"}}</tool_call>',
    "<code>\n```python\nprint(1)\n```\n</code>",
    "<answer>\n\\boxed{42}\n</answer>",
    "crop_image_normalized(bbox_2d=[0.1, 0.2, 0.3, 0.4], target_image=1)",
    "crop_image_normalized(bbox_2d=[0.1, 0.2, 0.3, 0.40], target_image=01)",
)
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
"""Any text, mostly made of what protocols look for."""
