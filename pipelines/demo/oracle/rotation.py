"""The oracle of ``rotation``: code that turns the image upright, then what it shows."""

from __future__ import annotations

import random

from pipelines.demo.oracle.family_script import answer_turn, family_script
from pipelines.models.policies.base import CompletionRequest
from pipelines.models.protocols import Thyme


def _turn_upright(turn: CompletionRequest) -> str:
    rng = random.Random(turn.task.seed)
    angle, correction = int(turn.task.hint["angle"]), int(turn.task.hint["correction"])
    lean = rng.choice(_LEANS[_lean(angle)])
    thought = f"{rng.choice(_SEEN).format(lean=lean)} {rng.choice(_WHY)} {rng.choice(_THEN)}"
    signed = correction if correction <= 180 else correction - 360
    code = rng.choice(_CODES).format(correction=rng.choice((correction, signed)))
    return Thyme().write_round(thought, code, first=True)


def _answer(turn: CompletionRequest) -> str:
    return answer_turn(turn, Thyme(), _SHOWS)


def _lean(angle: int) -> str:
    side = "left" if angle < 180 else "right"
    degrees = min(angle, 360 - angle)
    return f"{side} a little" if degrees < 65 else f"{side} on its side" if degrees <= 115 else f"{side} over"


script = family_script(_turn_upright, _answer)


_LEANS = {
    "left a little": ("leans clearly to the left", "is tilted counter-clockwise"),
    "right a little": ("leans clearly to the right", "is tilted clockwise"),
    "left on its side": ("lies on its left side", "is turned onto its left side"),
    "right on its side": ("lies on its right side", "is turned onto its right side"),
    "left over": (
        "is tipped over to the left, almost upside down",
        "hangs nearly head down, turned over its left side",
    ),
    "right over": (
        "is tipped over to the right, almost upside down",
        "hangs nearly head down, turned over its right side",
    ),
}
_SEEN = (
    "The picture {lean}: what should be level runs at a slant.",
    "Nothing stands straight here; the whole picture {lean}.",
    "The first thing to notice is that the picture {lean}.",
    "Whoever took this did not hold it upright: the picture {lean}.",
)
_WHY = (
    "Like this, shapes and print are hard to judge, and I might misread what the question asks for.",
    "To answer reliably I want to see it the right way up.",
    "The question is about something that I would rather not judge at such a slant.",
    "Details that matter for the question are easy to confuse in this position.",
)
_THEN = (
    "I will turn the whole picture back until its edges are level.",
    "Let me rotate it upright, with a canvas large enough to keep the corners.",
    "Turning it back the other way should put things in their usual position.",
)
_SHOWS = (
    "Now the picture stands upright and can be read as usual: {seen}.",
    "The right way up there is no difficulty left; it is {seen}.",
    "With the picture level again, the answer can be seen: {seen}.",
    "Upright, it clearly shows what was asked for: {seen}.",
)
_PIL_CODE = """\
from PIL import Image
import random

image = Image.open(image_path).convert("RGB")
# turn the picture back; the canvas grows so that no corner is lost
angle = {correction}
upright = image.rotate(angle, resample=Image.BICUBIC, expand=True)
processed_path = f"/mnt/data/temp_processed_images/upright_{{random.randint(1000, 9999)}}.png"
upright.save(processed_path)
print(processed_path)"""
_TRIMMED_CODE = """\
from PIL import Image, ImageChops
import random

image = Image.open(image_path).convert("RGB")
corner = image.getpixel((0, 0))
upright = image.rotate({correction}, resample=Image.BICUBIC, expand=True, fillcolor=corner)
# cut off the empty border that turning leaves behind
empty = Image.new("RGB", upright.size, corner)
difference = ImageChops.difference(upright, empty).convert("L").point(lambda level: 255 if level > 24 else 0)
content = difference.getbbox()
if content:
    upright = upright.crop(content)
processed_path = f"/mnt/data/temp_processed_images/upright_{{random.randint(1000, 9999)}}.png"
upright.save(processed_path)
print(processed_path)"""
_CV2_CODE = """\
import cv2
import random

image = cv2.imread(image_path)
height, width = image.shape[:2]
matrix = cv2.getRotationMatrix2D((width / 2, height / 2), {correction}, 1.0)
# a canvas that holds the turned picture
cos, sin = abs(matrix[0, 0]), abs(matrix[0, 1])
new_width, new_height = int(height * sin + width * cos), int(height * cos + width * sin)
matrix[0, 2] += new_width / 2 - width / 2
matrix[1, 2] += new_height / 2 - height / 2
upright = cv2.warpAffine(image, matrix, (new_width, new_height), flags=cv2.INTER_CUBIC)
processed_path = f"/mnt/data/temp_processed_images/upright_{{random.randint(1000, 9999)}}.png"
cv2.imwrite(processed_path, upright)
print(processed_path)"""
_CODES = (_PIL_CODE, _TRIMMED_CODE, _CV2_CODE)
