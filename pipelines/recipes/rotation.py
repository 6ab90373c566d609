"""Rotation: the picture is turned, the policy turns it back and answers (Thyme appendix B, Coding Data 2; table 11).

``prepare`` turns the image by a seeded angle; the policy is told the angle and the rotation that undoes it, writes how
one sees that the picture is not upright and a program that turns it, sees the result, and answers. The angle may show
in the program only, as a number. Pictures whose turn cannot be seen or measured are unsuitable.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

from PIL import Image

from pipelines.checks import answer_matches, executes, hint_stays_hidden, shows_an_image
from pipelines.checks.rotation import angle_undone, angle_unspoken, upright
from pipelines.digest import seed_from
from pipelines.images import ImageStore
from pipelines.orientation import orientation
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import Thyme
from pipelines.recipes.base import Recipe
from pipelines.records import ImageRef, Sample, TruthBox
from pipelines.registration import apart, pose_of
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared, spelled_answer

ANGLES = tuple(angle for angle in range(30, 336) if abs(angle - 180) > 10)
"""Degrees counter-clockwise. Thyme's range, without what half a turn would almost undo (table 11 forbids that)."""

CANVASES = ("expanded", "cropped")
"""What happens to the corners: the canvas grows to hold them, or keeps the picture's size and cuts them off."""

MAX_SIDE = 2048
"""Pixels. Turned and expanded, a larger picture is shrunk by the models until its small things are lost."""

FILLS = ((0, 0, 0), (255, 255, 255), (124, 124, 124))


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The image turned; the angle, and the one that undoes it, as the hint."""
    if not sample.images:
        raise RowFault(Reason.NOT_APPLICABLE, "the sample has no image")
    image = sample.images[0]
    if max(image.width, image.height) > MAX_SIDE:
        raise RowFault(Reason.UNSUITABLE, f"{image.width}x{image.height} pixels: longer than {MAX_SIDE}")
    if sample.truth.angle:
        raise RowFault(Reason.UNSUITABLE, f"the image is turned by {sample.truth.angle:g} degrees already")
    upright_image = _opaque(store.open(image))
    _require_visible(upright_image)
    draw = random.Random(seed_from("rotation", sample.sample_id))
    angle, canvas, fill = draw.choice(ANGLES), draw.choice(CANVASES), draw.choice(FILLS)
    if canvas == "cropped" and not _keeps(sample.truth.boxes, image, angle):
        canvas = "expanded"
    turned = upright_image.rotate(angle, Image.Resampling.BICUBIC, expand=canvas == "expanded", fillcolor=fill)
    _require_measurable(upright_image, turned, angle)
    made_by = f"rotation: turned by {angle} degrees, canvas {canvas}, fill {fill}"
    shown = store.add_pixels(turned, parent=image.sha256, made_by=made_by)
    return Prepared((shown, *sample.images[1:]), {"angle": angle, "correction": 360 - angle})


def _opaque(image: Image.Image) -> Image.Image:
    """RGB, what is transparent over white."""
    if not image.has_transparency_data:
        return image.convert("RGB")
    picture = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")


def _require_visible(image: Image.Image) -> None:
    found = orientation(image)
    if not found.visible:
        raise RowFault(Reason.UNSUITABLE, f"one cannot see that it is turned: {found}")


def _require_measurable(upright_image: Image.Image, turned: Image.Image, angle: int) -> None:
    found = pose_of(upright_image, turned)
    if found is None or abs(apart(found.angle, angle)) > 1:
        measured = "nothing" if found is None else f"{found.angle:.1f} degrees"
        raise RowFault(Reason.UNSUITABLE, f"its turn by {angle} degrees cannot be measured: found {measured}")


def _keeps(boxes: tuple[TruthBox, ...], image: ImageRef, angle: int) -> bool:
    """Whether a canvas of the picture's size still holds the target; where no target is known, it may be anywhere."""
    if not boxes or boxes[0].image != 0:
        return False
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    middle_x, middle_y = image.width / 2, image.height / 2
    box = boxes[0].box
    corners = [(x - middle_x, y - middle_y) for x in (box.x1, box.x2) for y in (box.y1, box.y2)]
    return all(abs(x * cos + y * sin) < middle_x and abs(y * cos - x * sin) < middle_y for x, y in corners)


def script(turn: Turn) -> str:
    """The oracle: the rotation, then what the upright picture shows."""
    return _look(turn) if not turn.rounds else _answer(turn)


def _look(turn: Turn) -> str:
    draw = random.Random(turn.task.seed)
    angle, correction = int(turn.task.hint["angle"]), int(turn.task.hint["correction"])
    lean = draw.choice(_LEANS[_lean(angle)])
    thought = f"{draw.choice(_SEEN).format(lean=lean)} {draw.choice(_WHY)} {draw.choice(_THEN)}"
    signed = correction if correction <= 180 else correction - 360
    code = draw.choice(_CODES).format(correction=draw.choice((correction, signed)))
    return Thyme().write_round(thought, code, first=True)


def _answer(turn: Turn) -> str:
    sample = turn.task.sample
    shows = random.Random(turn.seed).choice(_SHOWS).format(seen=spelled_answer(sample))
    closing = f" That is choice {sample.answer}." if sample.choices else ""
    return Thyme().write_answer(f"{shows}{closing}", sample.answer, first=False)


def _lean(angle: int) -> str:
    side = "left" if angle < 180 else "right"
    turned = min(angle, 360 - angle)
    return f"{side} a little" if turned < 65 else f"{side} on its side" if turned <= 115 else f"{side} over"


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

recipe = Recipe(
    family="rotation",
    description="Rotation: the picture is turned, the policy turns it upright and answers (Thyme App. B, table 11).",
    file=Path(__file__),
    prompt=bundled_prompt("rotation"),
    protocol=Thyme(),
    prepare=prepare,
    script=script,
    checks=(executes, shows_an_image, upright, angle_undone, answer_matches, hint_stays_hidden, angle_unspoken),
    n_wanted=14_000,
)
