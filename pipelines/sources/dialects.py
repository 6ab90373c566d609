"""How releases write turns, translated into the protocols of ours that execute them.

| dialect | a call | the answer | protocol |
| --- | --- | --- | --- |
| thyme | ``<code>``, a fenced Python block | ``<answer>`` | thyme |
| pyvision | ``<code>`` | ``<answer>`` | pyvision |
| tool_call | ``crop_image_normalized``, corners from 0 to 1 | ``\\boxed{}`` | tool_call |
| pixel_reasoner | the same, also called ``crop_image``; ``select_frames`` is of videos | ``\\boxed{}`` | tool_call |
| deepeyes | ``image_zoom_in_tool``, corners in pixels of an image that is counted from 0 | ``<answer>`` | tool_call |
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from darkroom.pipelines.models.protocols.markup import excerpt, split_at_tag, write_box
from darkroom.pipelines.records.reject_reasons import Reason, RowError

Sizes = Sequence[tuple[int, int]]
"""Width and height of the row's images, in pixels."""
Arguments = Callable[[Mapping[str, Any], Sizes], dict[str, Any]]
_CROP = "crop_image_normalized"


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way of writing turns. ``translate`` raises ``RowError`` (malformed_turn, not_applicable)."""

    protocol: str
    translate: Callable[[str, Sizes], str]


def _as_it_is(text: str, sizes: Sizes) -> str:
    return text


def _with_calls(arguments: Mapping[str, Arguments]) -> Callable[[str, Sizes], str]:
    """Rewrites the call of a turn as ``crop_image_normalized``, and an ``<answer>`` as a box."""

    def translate(text: str, sizes: Sizes) -> str:
        parts = split_at_tag(text, "tool_call")
        if parts is None:
            return _boxed(text)
        before, call_text, after = parts
        try:
            call = json.loads(call_text, strict=False)
        except (ValueError, RecursionError) as error:
            raise RowError(Reason.MALFORMED_TURN, f"the call is not JSON ({error}): {excerpt(call_text)}") from error
        name = call.get("name") if isinstance(call, dict) else None
        if name == "select_frames":
            raise RowError(Reason.NOT_APPLICABLE, "select_frames chooses among frames of a video: not executed again")
        if name not in arguments or not isinstance(call.get("arguments"), dict):
            known = ", ".join(arguments)
            raise RowError(Reason.MALFORMED_TURN, f"expected a call of {known}; found {excerpt(call_text)}")
        try:
            crop = arguments[str(name)](call["arguments"], sizes)
        except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
            raise RowError(Reason.MALFORMED_TURN, f"{name}: {error!r} in {excerpt(call_text)}") from error
        written = json.dumps({"name": _CROP, "arguments": crop})
        return f"{_thought(before)}\n<tool_call>\n{written}\n</tool_call>{after}"

    return translate


def _normalized(call: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    return {"bbox_2d": list(call["bbox_2d"]), "target_image": int(call.get("target_image", 1))}


def _in_pixels(call: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Corners in pixels of image ``img_idx`` (0 without one) as fractions of it."""
    index = int(call.get("img_idx", 0))
    if index < 0:
        raise ValueError(f"there is no image {index}")
    width, height = sizes[index]
    x1, y1, x2, y2 = (float(side) for side in call["bbox_2d"])
    return {"bbox_2d": [x1 / width, y1 / height, x2 / width, y2 / height], "target_image": index + 1}


def _boxed(text: str) -> str:
    parts = split_at_tag(text, "answer")
    if parts is not None and "</answer>" not in text.lower():
        raise RowError(Reason.MALFORMED_TURN, f"an <answer> is never closed: {excerpt(text)}")
    return text if parts is None else f"{_thought(parts[0])}\n{write_box(parts[1].strip())}"


def _thought(text: str) -> str:
    return text.replace("<think>", "").replace("</think>", "").strip()


DIALECTS: dict[str, Dialect] = {
    "thyme": Dialect("thyme", _as_it_is),
    "pyvision": Dialect("pyvision", _as_it_is),
    "tool_call": Dialect("tool_call", _as_it_is),
    "pixel_reasoner": Dialect("tool_call", _with_calls({_CROP: _normalized, "crop_image": _normalized})),
    "deepeyes": Dialect("tool_call", _with_calls({"image_zoom_in_tool": _in_pixels})),
}
"""Every dialect by the name that mapping files use."""
