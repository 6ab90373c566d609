"""Small releases with the columns that each is documented to have: made here, row by row, some of them damaged."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from tests.conftest import textured
from tests.image_files import encoded

NAMED = "/data/of/the/makers/street.png"


def as_jpeg(image: Image.Image) -> bytes:
    return encoded(image, "JPEG", quality=95)


def as_base64(image: Image.Image) -> str:
    return base64.b64encode(as_jpeg(image)).decode()


STREET = Image.open(io.BytesIO(as_jpeg(textured(3))))
"""The question's image, as its JPEG decodes."""
BOX = (100, 80, 260, 200)
CROP = STREET.crop(BOX)
CODE = f"""import cv2
image = cv2.imread("{NAMED}")
crop = image[80:200, 100:260]
processed_path = "/mnt/data/temp_processed_images/crop.jpg"
cv2.imwrite(processed_path, crop)
print(processed_path)"""


def thyme_row(*, code: str = CODE, shown: Image.Image = CROP, thought: str = "The sign is small.") -> dict[str, Any]:
    """A row like those of Thyme-SFT's README: base64, the output inside the response, the image by its makers' path."""
    response = (
        f"<think>{thought}\n<code>\n```python\n{code}\n```\n</code>\n"
        "<sandbox_output><image></sandbox_output>\nNow it can be read.</think>\n<answer> **C. STOP** </answer>"
    )
    question = f'<image>\nWhat does the sign say?\nOptions:\nA. GO\nC. STOP\n### User Image Path: "{NAMED}"'
    return {"image": [as_base64(STREET), as_base64(shown)], "question": question, "response": response}


def computing_row(printed: str = "42") -> dict[str, Any]:
    response = (
        "<think>I compute.\n<code>\n```python\nprint(6 * 7)\n```\n</code>\n"
        f"<sandbox_output>{printed}</sandbox_output>\nSo it is 42.</think>\n<answer>42</answer>"
    )
    return {"image": [], "question": "What is 6 times 7?", "response": response}


THYME = [
    thyme_row(),  # replays
    computing_row(),  # replays
    thyme_row(shown=STREET.crop((0, 0, 160, 120)), thought="Look there."),  # other pixels
    thyme_row(shown=STREET.crop((0, 0, 50, 50)), thought="Look here."),  # another size
    computing_row("43"),  # another text
    thyme_row(code="1 / 0", thought="It breaks."),  # no image, an error
    thyme_row(thought="I was told that the sign says STOP."),  # leaks
    computing_row() | {"response": "<think>Hm.</think> 42"},  # no answer tag
    computing_row() | {"response": "<think>a<code>\n```python\nprint(1)\n```\n</code><sandbox_output>1"},  # not closed
    thyme_row() | {"image": [as_base64(STREET)]},  # an image is missing
    computing_row() | {"response": "x" * 200_001},  # too long
]
THYME_REASONS = {7: "malformed_turn", 8: "malformed_turn", 9: "missing_image", 10: "malformed_row"}
"""Reasons of the rows that intake rejects, by index."""


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def messages(first: str, observation: Any, last: str, question: Any) -> list[dict[str, Any]]:
    roles = ("system", "user", "assistant", "user", "assistant")
    texts = ("You are a helpful assistant.", question, first, observation, last)
    return [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]


def deepeyes_row(box: Any = BOX, tool: str = "image_zoom_in_tool", **more: Any) -> dict[str, Any]:
    first = f"<think>I zoom in.</think>\n{call(tool, bbox_2d=list(box), label='sign', **more)}"
    last = "<think>It can be read now.</think>\n<answer>STOP</answer>"
    shown = "<tool_response>\n<image>\n</tool_response>"
    talk = messages(first, shown, last, "<image>\nWhat does the sign say?")
    return {"messages": talk, "images": ["street.jpg", "crop.jpg"]}


DEEPEYES = [deepeyes_row(), deepeyes_row((0, 0, 5, 5)), deepeyes_row(tool="draw"), deepeyes_row("abcd")]


def pixel_reasoner_row(target_image: int = 1, tool: str = "crop_image_normalized") -> dict[str, Any]:
    width, height = STREET.size
    box = [BOX[0] / width, BOX[1] / height, BOX[2] / width, BOX[3] / height]
    parts: Any = [{"type": "text", "text": "Here is the crop:"}, {"type": "image", "image": "images/crop.jpg"}]
    question = [{"type": "image", "image": "images/street.jpg"}, {"type": "text", "text": "What does the sign say?"}]
    arguments = {"target_frames": [1, 2]} if tool == "select_frames" else {"bbox_2d": box, "target_image": target_image}
    first, last = f"I look closer with {tool}. {call(tool, **arguments)}", r"It says STOP. \boxed{STOP}"
    talk = messages(first, parts, last, question)
    for message in talk:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
    return {"message_list": talk}


PIXEL_REASONER = [
    pixel_reasoner_row(),
    pixel_reasoner_row(tool="crop_image"),
    pixel_reasoner_row(tool="select_frames"),
    pixel_reasoner_row(target_image=7),
]


def mini_o3_row(source: str = "original_image", **changes: Any) -> dict[str, Any]:
    """Messages as JSON in a text; a call is its arguments alone, by the name of the image."""
    width, height = STREET.size
    box = [BOX[0] / width, BOX[1] / height, BOX[2] / width, BOX[3] / height]
    call_text = json.dumps({"bbox_2d": box, "source": source})
    shown = "After the above Action 0, here is the the zoom-in image (Observation 1):\n<image>.\nContinue."
    talk = [
        {"from": "system", "value": "You may zoom in."},
        {"from": "human", "value": "<image>\nWhat does the sign say?"},
        {"from": "gpt", "value": f"<think>I look closer.</think><grounding>{call_text}</grounding>"},
        {"from": "human", "value": shown},
        {"from": "gpt", "value": "<think>It can be read.</think><answer> STOP </answer>"},
    ]
    return {"conversations": json.dumps(talk), "images": ["street.jpg", "crop.jpg"], "data_source": "vstar", **changes}


MINI_O3 = [mini_o3_row(), mini_o3_row("observation_1"), mini_o3_row("the sign")]


def write(folder: Path, rows: list[dict[str, Any]], name: str = "rows.jsonl") -> Path:
    """The rows as JSON lines, with the images that paths name."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for path, image in (("street.jpg", STREET), ("crop.jpg", CROP)):
        # the crop of a decoded JPEG as PNG bytes: crops of the release are exact here
        data = as_jpeg(textured(3)) if path == "street.jpg" else encoded(image)
        (folder / path).write_bytes(data)
        (folder / "images" / path).write_bytes(data)
    path = folder / name
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path
