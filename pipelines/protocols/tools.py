"""The two tools of ``tool_call``, as JSON calls and as Python: what a call is in a record's ``code``.

    {"name": "code_interpreter", "arguments": {"code": "print(6 * 7)"}}
    print(6 * 7)

    {"name": "crop_image_normalized", "arguments": {"bbox_2d": [0.1, 0.2, 0.3, 0.4], "target_image": 1}}
    crop_image_normalized(bbox_2d=[0.1, 0.2, 0.3, 0.4], target_image=1)

The last line can be run, because ``setup.py`` defines the function, and ``write_call`` makes exactly that call of it
again. A box that makes no sense is an error of the tool, which the policy sees; only what is no call is malformed.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.protocols.base import Malformed, excerpt
from pipelines.protocols.markup import lines, program

CODE, CROP = "code_interpreter", "crop_image_normalized"

CODE_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": CODE,
        "description": "Executes a Python program and returns what it printed and the figures that plt.show() showed.",
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string", "description": "The program, complete with its imports."}},
            "required": ["code"],
        },
    },
}
CROP_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": CROP,
        "description": "Shows one part of an image on its own, so that small things in it become visible.",
        "parameters": {
            "type": "object",
            "properties": {
                "bbox_2d": {
                    "type": "array",
                    "items": {"type": "number"},
                    "description": "Left, top, right and bottom of the part, as fractions from 0 to 1 of that image.",
                },
                "target_image": {
                    "type": "integer",
                    "description": "Which image: 1 is the first one given; images shown by calls are counted on.",
                },
            },
            "required": ["bbox_2d", "target_image"],
        },
    },
}
_LINE = re.compile(r"crop_image_normalized\(bbox_2d=(\[[-+.,e\d ]+\]), target_image=(-?\d+)\)", re.ASCII)
_TAG = re.compile(r"<(?=/?tool_(?:call|response)>)", re.IGNORECASE | re.ASCII)

_STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
_MOST = 2**53
"""Beyond it an integer of JSON has no equal among floats."""
_Whole = Annotated[int, Field(ge=-_MOST, le=_MOST)]
_Number = _Whole | Annotated[float, Field(ge=-_MOST, le=_MOST)]


class _Code(BaseModel):
    model_config = _STRICT
    code: str


class _Crop(BaseModel):
    model_config = _STRICT
    bbox_2d: list[_Number] = Field(min_length=4, max_length=4)
    target_image: _Whole


class _CodeCall(BaseModel):
    model_config = _STRICT
    name: Literal["code_interpreter"]
    arguments: _Code


class _CropCall(BaseModel):
    model_config = _STRICT
    name: Literal["crop_image_normalized"]
    arguments: _Crop


def read_call(text: str) -> str | Malformed:
    """The code of a call that was written as JSON; line ends may stand in its strings as they are."""
    try:
        call = json.loads(text, strict=False)
    except (ValueError, RecursionError) as fault:
        return Malformed(f"the call is not JSON ({fault}): {excerpt(text)}")
    name = call.get("name") if isinstance(call, dict) else None
    kind: type[_CodeCall | _CropCall] | None = {CODE: _CodeCall, CROP: _CropCall}.get(str(name))
    if kind is None:
        return Malformed(f"the call names neither {CODE} nor {CROP}: {excerpt(text)}")
    try:
        made = kind.model_validate(call)
    except ValidationError as fault:
        first = fault.errors()[0]
        return Malformed(f"{name}: {'.'.join(map(str, first['loc']))}: {first['msg']}: {excerpt(text)}")
    if isinstance(made, _CropCall):
        return crop_line(made.arguments.bbox_2d, made.arguments.target_image)
    return program(lines(made.arguments.code))


def write_call(code: str) -> str:
    """The call of a record's code, as JSON. Tags in its strings are spelt so that they end nothing."""
    crop = _crop_arguments(code)
    call = {"name": CROP, "arguments": crop} if crop else {"name": CODE, "arguments": {"code": code}}
    return _TAG.sub(r"\\u003c", json.dumps(call, ensure_ascii=False))


def crop_line(bbox_2d: list[int | float], target_image: int) -> str:
    """A crop as a line of Python; ``bbox_2d`` in fractions of the image, ``target_image`` counted from 1."""
    return f"{CROP}(bbox_2d={bbox_2d!r}, target_image={target_image!r})"


def _crop_arguments(code: str) -> dict[str, Any] | None:
    """The arguments of a line that ``crop_line`` could have made; None for any other program."""
    found = _LINE.fullmatch(code)
    if found is None:
        return None
    try:
        crop = _Crop.model_validate({"bbox_2d": json.loads(found[1]), "target_image": int(found[2])})
    except ValueError:  # numbers that Python or the tool would not write so
        return None
    return crop.model_dump() if crop_line(crop.bbox_2d, crop.target_image) == code else None
