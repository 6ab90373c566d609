r"""Tool calls as JSON, as Hermes and Qwen write them (Look Less, Reason More, appendix B; FIGR figure 6).

The sign is too small to read, so I zoom in.
<tool_call>
{"name": "crop_image_normalized", "arguments": {"bbox_2d": [0.1, 0.2, 0.3, 0.4], "target_image": 1}}
</tool_call>                         <- a turn ends here; the tool answers, as a user:
<tool_response>
image 2: 480x320 pixels
[image]
</tool_response>
It says 42.
\boxed{42}

A turn makes one call. With images the prompt offers the crop (that paper), without any the interpreter (FIGR), in the
mode ``forbidden`` neither; ``tools.py`` has the calls as records store them.
"""

import json
import re

from darkroom.pipelines.models.messages import Message, opening_messages
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols.markup import (
    Malformed,
    ParsedTurn,
    excerpt,
    fits_a_box,
    one_answer,
    split_at_tag,
    tag,
    write_box,
)
from darkroom.pipelines.models.protocols.protocol import Protocol
from darkroom.pipelines.models.protocols.tools import CODE_TOOL, CROP_SETUP, CROP_TOOL, read_call, write_call
from darkroom.pipelines.models.tasks import image_sizes
from darkroom.pipelines.records import ImageRef, VideoRef

_AROUND = ((r"\$\$?", r"\$"), (r"\\\[", r"\\\]"), (r"\\\(", r"\\\)"), (r"\*\*", r"\*\*"))
"""Delimiters of mathematics and emphasis around a box; the opening one would be left in the thought."""


class ToolCall(Protocol):
    r"""One JSON call per turn, then an answer in a box.

    A turn is read as a call, or else as the last ``\boxed`` answer; a box in the text before a call is no answer.
    Malformed: two calls in a row, a call that ``tools.read_call`` rejects, boxes that differ, a tag that only the tool
    writes, a tag without its partner.
    """

    name, container, marker = "tool_call", "tool_call", "tool_response"
    tags = ("tool_call",)
    modes = ("free", "forced", "forbidden")
    setup = CROP_SETUP
    one_only = True

    def _opening(
        self, question: str, images: tuple[ImageRef, ...], videos: tuple[VideoRef, ...], mode: str
    ) -> tuple[Message, ...]:
        """System prompt with the tool, then the images and the question with the images' sizes."""
        tool = json.dumps(CROP_TOOL if images else CODE_TOOL)
        system, user = bundled_prompt("tool_call").render(
            question=question, sizes=image_sizes(images), has_images=bool(images), tool=tool, mode=mode
        )
        return opening_messages(system, images, user, question=question)

    def _read(self, text: str) -> ParsedTurn | Malformed:
        parts = split_at_tag(text, self.container)
        thought = parts[0] if parts else text
        if tag(f"/?{self.marker}").search(thought):
            return Malformed(f"the turn has a tool's marker of its own: {excerpt(thought)}")
        return _with_call(*parts) if parts else _with_answer(thought)

    def _written(self, turn: ParsedTurn, first: bool) -> str:
        if turn.code is not None:
            return f"{turn.thought}\n<tool_call>\n{write_call(turn.code)}\n</tool_call>".lstrip()
        return f"{turn.thought}\n{write_box(turn.answer or '')}".lstrip()


def _with_call(thought: str, call: str, after: str) -> ParsedTurn | Malformed:
    if tag("tool_call").match(after.lstrip()):
        return Malformed(f"the turn makes two calls: {excerpt(call)}")
    code = read_call(call)
    return code if isinstance(code, Malformed) else ParsedTurn(thought.strip(), code=code)


def _with_answer(text: str) -> ParsedTurn | Malformed:
    box = one_answer(text)
    if box is None:
        return Malformed(rf"the turn has neither <tool_call> nor \boxed: {excerpt(text)}")
    if isinstance(box, Malformed):
        return box
    if not fits_a_box(box.answer):
        return Malformed(f"the boxed answer ends in a backslash: {excerpt(box.answer)}")
    return ParsedTurn(_before(text[: box.start], text[box.end :]), answer=box.answer)


def _before(text: str, after: str) -> str:
    """The text before a box, without a delimiter that closes behind the box."""
    text, after = text.strip(), after.lstrip()
    for opening, closing in _AROUND:
        if (delimiter := re.search(rf"{opening}\Z", text)) and re.match(closing, after):
            return text[: delimiter.start()].strip()
    return text
