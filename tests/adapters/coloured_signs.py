"""Questions about the colour of a sign, in the columns of benchmarks, and a model that crops the sign and names it."""

from __future__ import annotations

import base64
import io
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from darkroom.pipelines.models.protocols import Thyme
from tests.image_files import encoded
from tests.json_endpoint import JsonHandler
from tests.train.evaluation.conftest import COLOURS, TARGET, desert

OPTIONS, LETTERS = (*COLOURS, "grey"), "ABCD"
N_QUESTIONS, WRONG = 12, 5
"""The latter is the question whose label is not the sign's colour."""
LOOK = Thyme().write_round(
    "I look.", f"Image.open(image_path).crop({TARGET}).save('c.png')\nprint('c.png')", first=True
)


class Question(NamedTuple):
    """A sign in a PNG file, and the options of its colour."""

    file: bytes
    options: Sequence[str]
    label: str


def questions() -> Iterator[Question]:
    """``N_QUESTIONS`` of them."""
    shuffled = random.Random(0)
    for number in range(N_QUESTIONS):
        colour, options, image = list(COLOURS)[number % len(COLOURS)], [*OPTIONS], desert(number)
        ImageDraw.Draw(image).rectangle(TARGET, fill=COLOURS[colour])
        shuffled.shuffle(options)
        place = options.index(colour) + (number == WRONG)
        yield Question(encoded(image), options, LETTERS[place % len(LETTERS)])


def vstar_text(question: Question) -> str:
    """The question with its options, as V* has it."""
    options = " ".join(f"({letter}) {name}" for letter, name in zip(LETTERS, question.options, strict=True))
    return f"What colour is the sign? {options}"


def write_vstar(folder: Path) -> Path:
    """V*'s files, as its authors' program reads them."""
    (folder / "direct_attributes").mkdir(parents=True)
    lines = []
    for number, question in enumerate(questions()):
        name = f"direct_attributes/{number}.png"
        (folder / name).write_bytes(question.file)
        (folder / name).with_suffix(".json").write_text(json.dumps({"bbox": [[*TARGET[:2], 60, 30]]}))
        about = {"label": question.label, "category": "direct_attributes", "question_id": str(number)}
        lines.append(json.dumps({"image": name, "text": vstar_text(question), **about}))
    (folder / "test_questions.jsonl").write_text("\n".join(lines))
    return folder


class Model(JsonHandler):
    """Crops the sign, and says the letter of its colour."""

    def answer(self, body: dict[str, Any]) -> Any:
        user = [part for message in body["messages"] if message["role"] == "user" for part in message["content"]]
        images = [part["image_url"]["url"] for part in user if part["type"] == "image_url"]
        text = "".join(part.get("text", "") for part in user)
        said = LOOK if len(images) == 1 else _letter_of(images[-1], text)
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        return {"choices": [{"message": {"content": said}, "finish_reason": "stop"}], "usage": usage}


def _letter_of(url: str, text: str) -> str:
    crop = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")
    mean = np.asarray(crop, float).mean(axis=(0, 1))
    colour = min(COLOURS, key=lambda name: np.abs(mean - COLOURS[name]).sum())
    letter = re.search(rf"\(?([{LETTERS}])[.)] ?{colour}", text)
    return f"It is {colour}.</think>\n<answer>{letter[1] if letter else colour}</answer>"
