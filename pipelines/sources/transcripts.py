"""Released trajectories, read turn by turn: what the model wrote, in a protocol of ours, and what it was shown.

    {"image": [original, processed], "question": "<image>\\n…", "response": "<think>…<code>…</code><sandbox_output>…"}
    {"messages": [{"role": "user", "content": [{"type": "image", "image": "a.jpg"}, {"type": "text", …}]}, …]}

One text with the observations inside it (Thyme), or messages in turns, of texts with ``<image>`` or of parts. Each turn
is translated from its dialect and must parse in a protocol of ours. Texts are untrusted: bounded, and searched once.

| dialect | a call | the answer | protocol |
| --- | --- | --- | --- |
| thyme | ``<code>``, a fenced Python block | ``<answer>`` | thyme |
| pyvision | ``<code>`` | ``<answer>`` | pyvision |
| tool_call | ``crop_image_normalized``, corners from 0 to 1 | ``\\boxed{}`` | tool_call |
| pixel_reasoner | the same, also called ``crop_image``; ``select_frames`` is of videos | ``\\boxed{}`` | tool_call |
| deepeyes | ``image_zoom_in_tool``, corners in pixels of an image that is counted from 0 | ``<answer>`` | tool_call |
| mini_o3 | ``<grounding>``, corners from 0 to 1 of ``original_image`` or ``observation_1`` | ``<answer>`` | tool_call |
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from darkroom.pipelines.models.protocols import PROTOCOLS, Malformed
from darkroom.pipelines.models.protocols.markup import excerpt, split_at_tag, tag, write_box
from darkroom.pipelines.records import Truth
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.samples import IMAGE_MARK
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.sources.answers import answer_in
from darkroom.pipelines.sources.columns import Columns, TranscriptColumns, alternatives, list_in, value_at
from darkroom.pipelines.sources.conversations import MODEL, SYSTEM, Talk, read_messages
from darkroom.pipelines.sources.intake_notes import unread_in
from darkroom.pipelines.sources.media import IMAGE, describe, file_names, media, part_images
from darkroom.pipelines.sources.texts import text_at
from darkroom.pipelines.storage.media_validation import probe

Sizes = Sequence[tuple[int, int]]
"""Width and height of the row's images, in pixels."""
Arguments = Callable[[Mapping[str, Any], Sizes], dict[str, Any]]
_CROP = "crop_image_normalized"


def _translated(text: str, calls: Mapping[str, Arguments], sizes: Sizes) -> str:
    """The turn with its call as ``crop_image_normalized``, and its ``<answer>`` as a box; unchanged without ``calls``.
    Raises ``RowError`` (malformed_turn, not_applicable)."""
    marker = "grounding" if "grounding" in calls else "tool_call"
    parts = split_at_tag(text, marker) if calls else None
    if parts is None:
        return _boxed(text) if calls else text
    before, call_text, after = parts
    try:
        call = json.loads(call_text, strict=False)
    except (ValueError, RecursionError) as error:
        raise RowError(Reason.MALFORMED_TURN, f"the call is not JSON ({error}): {excerpt(call_text)}") from error
    if marker in calls:  # the arguments alone
        call = {"name": marker, "arguments": call}
    name = call.get("name") if isinstance(call, dict) else None
    if name == "select_frames":
        raise RowError(Reason.NOT_APPLICABLE, "select_frames chooses among frames of a video: not executed again")
    if name not in calls or not isinstance(call.get("arguments"), dict):
        raise RowError(Reason.MALFORMED_TURN, f"expected a call of {', '.join(calls)}; found {excerpt(call_text)}")
    try:
        crop = calls[str(name)](call["arguments"], sizes)
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
        raise RowError(Reason.MALFORMED_TURN, f"{name}: {error!r} in {excerpt(call_text)}") from error
    written = json.dumps({"name": _CROP, "arguments": crop})
    return f"{_thought(before)}\n<tool_call>\n{written}\n</tool_call>{after}"


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


def _of_source(call: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """The n-th observation is the image after the question's only one."""
    source = str(call.get("source", "original_image"))
    number = 0 if source == "original_image" else int(source.removeprefix("observation_"))
    return {"bbox_2d": list(call["bbox_2d"]), "target_image": number + 1}


def _boxed(text: str) -> str:
    parts = split_at_tag(text, "answer")
    if parts is not None and "</answer>" not in text.lower():
        raise RowError(Reason.MALFORMED_TURN, f"an <answer> is never closed: {excerpt(text)}")
    return text if parts is None else f"{_thought(parts[0])}\n{write_box(parts[1].strip())}"


def _thought(text: str) -> str:
    return text.replace("<think>", "").replace("</think>", "").strip()


DIALECTS: Mapping[str, tuple[str, Mapping[str, Arguments]]] = {
    "thyme": ("thyme", {}),
    "pyvision": ("pyvision", {}),
    "tool_call": ("tool_call", {}),
    "pixel_reasoner": ("tool_call", {_CROP: _normalized, "crop_image": _normalized}),
    "deepeyes": ("tool_call", {"image_zoom_in_tool": _in_pixels}),
    "mini_o3": ("tool_call", {"grounding": _of_source}),
}
"""Each dialect's protocol, and its calls that are rewritten, by the name that mapping files use."""

MAX_CHARS, MAX_TURNS = 200_000, 64
"""Bounds of one trajectory."""
RELEASED = "released"
"""The key of ``Truth.details`` under which a sample holds its released trajectory."""
_OBSERVATIONS = ("sandbox_output", "tool_response", "interpreter")
"""Tags of observations inside the model's text."""
_MARKER = re.compile(rf"</?(?:{'|'.join(_OBSERVATIONS)}|output)>|{IMAGE_MARK}")


def released_row(row: Mapping[str, Any], columns: Columns, *, where: str, folder: Path, license: str) -> SourceRow:
    """A row of a release as a source's row, with the trajectory in its details; images are the question's, then the
    observations'. The answer is of the column ``label``, else the trajectory's; details say so. Raises ``RowError``."""
    transcript = columns.transcript
    assert transcript is not None
    messages, in_parts = _messages(row, columns, transcript)
    if sum(len(text) for _, text in messages) > MAX_CHARS:
        raise RowError(Reason.MALFORMED_ROW, f"the trajectory has more than {MAX_CHARS:,} characters")
    question, turns, observations = _turns(messages)
    source, column = ({"image": in_parts}, "image") if in_parts else (row, columns.images)
    images = tuple(media(source, column, folder, IMAGE))
    counts = [text.count(IMAGE_MARK) for text in (question, *observations)]
    if sum(counts) != len(images):
        raise RowError(Reason.MISSING_IMAGE, f"the texts show {sum(counts)} images, the row has {len(images)}")
    sizes = [probe(image).image.size for image in images]
    protocol, calls = DIALECTS[transcript.dialect]
    translated = [_translated(text, calls, sizes) for text in turns]
    answer, label = _parsed(translated, protocol), transcript.label
    observed = zip(observations, counts[1:], strict=True)
    details = {
        "protocol": protocol,
        "dialect": transcript.dialect,
        "turns": translated,
        "observations": [{"text": _MARKER.sub("", text).strip(), "n_images": n} for text, n in observed],
        "n_question_images": counts[0],
        "has_label": label is not None,
    }
    (posed,) = Talk([question], {0: ""}).asked(columns, counts[0])
    right = answer_in(value_at(row, label), label, columns).text if label else answer
    truth = Truth(details=json.dumps({RELEASED: details}, sort_keys=True, ensure_ascii=False))
    category, own = (text_at(row, name) if name else "" for name in (columns.category, columns.license))
    asked = (posed.question, right, (), truth, category, own or license)
    return SourceRow(where, images, *asked, files=file_names(source, column), unread=unread_in(row, columns))


def _messages(
    row: Mapping[str, Any], columns: Columns, transcript: TranscriptColumns
) -> tuple[list[tuple[bool, str]], list[Any]]:
    """The conversation, each text with whether the model wrote it, and the images inside its parts, in order."""
    value = value_at(row, transcript.column)
    entries = list_in(value) if not isinstance(value, str) or value.lstrip().startswith("[") else None
    if entries is None:
        if not isinstance(value, str) or not value.strip():
            raise RowError(Reason.WRONG_TYPE, f"column {transcript.column!r}: expected a text, found {describe(value)}")
        return [(False, text_at(row, alternatives(columns.question)[0])), (True, value)], []
    if len(entries) > 2 * MAX_TURNS:
        raise RowError(Reason.MALFORMED_ROW, f"{len(entries)} messages, at most {2 * MAX_TURNS} are read")
    messages = [message for message in read_messages(entries) if message.role != SYSTEM]
    return [(message.role in MODEL, "".join(message.texts)) for message in messages], part_images(entries)


def _turns(messages: Sequence[tuple[bool, str]]) -> tuple[str, list[str], list[str]]:
    first = next((n for n, (by_model, _) in enumerate(messages) if by_model), len(messages))
    question = "\n".join(text for _, text in messages[:first])
    turns: list[str] = [""]
    observations: list[str] = []
    for by_model, text in messages[first:]:
        for is_turn, piece in _pieces(text) if by_model else [(False, text)]:
            if is_turn:
                turns[-1] += piece
            else:
                observations.append(piece)
                turns.append("")
    if not question.strip() or not turns[-1].strip():
        raise RowError(Reason.MALFORMED_ROW, "expected a question first and the model's answer last")
    if len(turns) > MAX_TURNS:
        raise RowError(Reason.MALFORMED_ROW, f"{len(turns)} turns, at most {MAX_TURNS} are read")
    return question, turns, observations


def _pieces(text: str) -> Iterator[tuple[bool, str]]:
    """The model's own pieces of a text (True), and the observations inside it."""
    position = 0
    for _ in range(MAX_TURNS):
        opening = tag(*_OBSERVATIONS).search(text, position)
        if opening is None:
            yield True, text[position:]
            return
        closing = f"</{opening[0][1:]}"
        end = text.find(closing, opening.end())
        if end < 0:
            raise RowError(Reason.MALFORMED_TURN, f"a {opening[0]} is never closed")
        yield True, text[position : opening.start()]
        yield False, text[opening.end() : end]
        position = end + len(closing)
    raise RowError(Reason.MALFORMED_ROW, f"more than {MAX_TURNS} turns")


def _parsed(turns: Sequence[str], protocol: str) -> str:
    """The answer of the last turn; the others have code."""
    answer = ""
    for number, text in enumerate(turns, start=1):
        turn = PROTOCOLS[protocol].parse(text)
        if isinstance(turn, Malformed):
            raise RowError(Reason.MALFORMED_TURN, f"turn {number}: {turn.evidence}")
        is_last = number == len(turns)
        if is_last != (turn.code is None):
            what = "is the last and has no answer" if is_last else "has no code, and an observation follows it"
            raise RowError(Reason.MALFORMED_TURN, f"turn {number} {what}")
        answer = turn.answer or ""
    return answer
