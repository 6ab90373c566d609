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

A turn makes calls that run in order, usually one. With images the prompt offers the crop (that paper), without any the
interpreter (FIGR), in the mode ``forbidden`` neither. A record's ``code`` stores the interpreter's code as it is, and a
crop as a line of Python:

    crop_image_normalized(bbox_2d=[0.1, 0.2, 0.3, 0.4], target_image=1)

It can be run, because ``CROP_SETUP`` defines the function, and ``write_call`` turns it back into that call. An invalid
box is an error of the tool, which the policy sees; only an invalid call is malformed. A record holds a call that is
spelled otherwise (``call_spellings``) in the protocol's own way, and the model's text among the observation's edits.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from darkroom.pipelines.models.messages import Message, opening_messages
from darkroom.pipelines.models.prompts import bundled_prompt
from darkroom.pipelines.models.protocols.call_spellings import json_value, spelled_call
from darkroom.pipelines.models.protocols.markup import (
    Malformed,
    ParsedTurn,
    another_container,
    excerpt,
    fenced_code,
    fits_a_box,
    lines,
    one_answer,
    split_at_tag,
    tag,
    write_box,
)
from darkroom.pipelines.models.protocols.protocol import Images, Protocol, Videos
from darkroom.pipelines.models.tasks import image_sizes
from darkroom.pipelines.records import Edit

CROP_SETUP: str = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["crop_setup"]


CODE, CROP = "code_interpreter", "crop_image_normalized"

_TOOLS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("tools.json").read_text())
CODE_TOOL, CROP_TOOL = _TOOLS["code"], _TOOLS["crop"]
"""As system prompts have them."""
_LINE = re.compile(r"crop_image_normalized\(bbox_2d=(\[[-+.,e\d ]+\]), target_image=(-?\d+)\)", re.ASCII)
_TAG = re.compile(r"<(?=/?tool_(?:call|response)>)", re.IGNORECASE | re.ASCII)

_MAX = 2**53
"""Larger integers of JSON have no exact float."""
_Integer = Annotated[int, Field(ge=-_MAX, le=_MAX)]
_Number = _Integer | Annotated[float, Field(ge=-_MAX, le=_MAX)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Code(_Strict):
    code: str


class _Crop(_Strict):
    bbox_2d: list[_Number] = Field(min_length=4, max_length=4)
    target_image: _Integer


_SAME = {
    **dict.fromkeys(("python", "python_interpreter", "code", "execute_python", "run_python", "ipython"), CODE),
    **dict.fromkeys(("crop", "crop_image", "zoom_in", "crop_image_normalised"), CROP),
}
"""Tools of other prompts that do the same; not DeepEyes' ``image_zoom_in_tool``, whose boxes are pixels."""
_NAMING = {"label", "labels", "description", "object", "object_name", "reason"}
"""Arguments that name a crop's target and change nothing."""
_MOST_CALLS = 16


def read_call(text: str) -> ParsedTurn | Malformed:
    """The code of one call, and the call itself where it was mended."""
    call = spelled_call(text)
    if isinstance(call, Malformed):
        return call
    tool, arguments, mended = _SAME.get(call.name, call.name), call.arguments, list(call.mended)
    if tool not in (CODE, CROP):
        return Malformed(f"the call names neither {CODE} nor {CROP}: {excerpt(text)}")
    if tool != call.name:
        mended.append(call.name)
    if tool == CROP and isinstance(arguments, dict):
        plain = {name: _plain(value) for name, value in arguments.items() if name not in _NAMING}
        if repr(plain) != repr(arguments):
            mended.append("numbers or labels")
        arguments = plain
    try:
        if tool == CODE:
            code = fenced_code(lines(_Code.model_validate(arguments).code))
        else:
            crop = _Crop.model_validate(arguments)
            code = crop_line(crop.bbox_2d, crop.target_image)
    except ValidationError as error:
        first = error.errors()[0]
        return Malformed(f"{tool}: {'.'.join(map(str, ('arguments', *first['loc'])))}: {first['msg']}: {excerpt(text)}")
    if isinstance(code, Malformed):
        return code
    edits = (Edit(f"tool call: {', '.join(mended)}", text.strip(), write_call(code)),) if mended else ()
    return ParsedTurn("", code=code, mended=edits)


def _plain(value: Any) -> Any:
    """A box or a number, also one in a text; an image's number may end in ``.0``."""
    value = json_value(value)
    if isinstance(value, list):
        return [json_value(side) for side in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def write_call(code: str) -> str:
    """A record's code as one call in JSON; tags in its strings are escaped."""
    crop = _crop_arguments(code)
    call = {"name": CROP, "arguments": crop} if crop else {"name": CODE, "arguments": {"code": code}}
    return _TAG.sub(r"\\u003c", json.dumps(call, ensure_ascii=False))


def crop_line(bbox_2d: list[int | float], target_image: int) -> str:
    """A crop as a line of Python; ``bbox_2d`` in fractions of the image, ``target_image`` counted from 1."""
    return f"{CROP}(bbox_2d={bbox_2d!r}, target_image={target_image!r})"


def _crop_arguments(code: str) -> dict[str, Any] | None:
    """The arguments of a line as ``crop_line`` writes it; None for any other code."""
    if (call := _LINE.fullmatch(code)) is None:
        return None
    try:
        crop = _Crop.model_validate({"bbox_2d": json.loads(call[1]), "target_image": int(call[2])})
    except ValueError:  # numbers in another spelling than Python's or JSON's
        return None
    return crop.model_dump() if crop_line(crop.bbox_2d, crop.target_image) == code else None


_AROUND = ((r"\$\$?", r"\$"), (r"\\\[", r"\\\]"), (r"\\\(", r"\\\)"), (r"\*\*", r"\*\*"))
"""Delimiters of mathematics and emphasis around a box; the opening one would be left in the thought."""


class ToolCall(Protocol):
    r"""One JSON call per turn, then an answer in a box. A turn is read as a call, or else as the last ``\boxed``
    answer; a box in the text before a call is none. Malformed: a call that ``read_call`` rejects, more than 16 in a
    row, boxes that differ, a tag that only the tool writes, a tag without its partner."""

    name, container, marker = "tool_call", "tool_call", "tool_response"
    tags = ("tool_call",)
    modes = ("free", "forced", "forbidden")
    setup = CROP_SETUP
    takes_several = True

    def _opening(self, question: str, images: Images, videos: Videos, mode: str) -> tuple[Message, ...]:
        slots = {"question": question, "sizes": image_sizes(images), "has_images": bool(images), "mode": mode}
        system, user = bundled_prompt("tool_call").render(**slots, tool=json.dumps(CROP_TOOL if images else CODE_TOOL))
        return opening_messages(system, images, user, question=question)

    def _read(self, text: str) -> ParsedTurn | Malformed:
        parts = split_at_tag(text, self.container)
        thought = parts[0] if parts else text
        if tag(f"/?{self.marker}").search(thought):
            return Malformed(f"the turn has a tool's marker of its own: {excerpt(thought)}")
        if not parts:
            return _with_answer(text)
        calls = [read_call(parts[1])]
        while len(calls) <= _MOST_CALLS and another_container(parts[2], self.container):
            parts = split_at_tag(parts[2], self.container) or parts
            calls.append(read_call(parts[1]))
        if len(calls) > _MOST_CALLS:
            return Malformed(f"the turn makes more than {_MOST_CALLS} calls")
        read = [call for call in calls if isinstance(call, ParsedTurn)]
        if len(read) < len(calls):
            return next(call for call in calls if isinstance(call, Malformed))
        code = "\n".join(call.code or "" for call in read)
        return ParsedTurn(thought.strip(), code=code, mended=tuple(edit for call in read for edit in call.mended))

    def _written(self, turn: ParsedTurn, first: bool) -> str:
        if turn.code is not None:
            crops = turn.code.split("\n")
            codes = crops if all(map(_crop_arguments, crops)) else [turn.code]
            calls = [f"<tool_call>\n{write_call(code)}\n</tool_call>" for code in codes]
            return "\n".join([turn.thought, *calls]).lstrip()
        return f"{turn.thought}\n{write_box(turn.answer or '')}".lstrip()


def _with_answer(text: str) -> ParsedTurn | Malformed:
    if (box := one_answer(text)) is None:
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
