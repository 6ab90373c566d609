"""Printed notices in front of real photographs, with a question about one line of the print, the box of the truth. The
print can be read from the whole image once it is upright and has its contrast."""

from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFilter

from darkroom.pipelines.demo import data_beside, nth_form
from darkroom.pipelines.demo.images import material
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.sources import SourceRow

SIZE = (800, 600)
N_NOTICES = 24
N_LINES = 4
BEHIND = ("astronaut", "cat", "coffee", "rocket", "pagoda", "flower", "officer", "camera")
INK = (34, 32, 36)
PAPERS = ((246, 243, 234), (232, 238, 242), (248, 236, 214), (236, 244, 230))
TABLE = data_beside(__file__)


def notices(seed: int) -> list[material.LazyRow]:
    """A question about each line of every notice by name, not printed yet."""
    return material.rows_by_image("notice", _row, [N_LINES] * N_NOTICES, seed)


def _row(name: str, number: int, n: int, seed: int) -> SourceRow:
    notice = _printed(number, seed)
    key, value, box = [notice.lines[notice.line], *notice.lines[: notice.line], *notice.lines[notice.line + 1 :]][n]
    own = "What does the {notice} in front of {image} give as '{key}'?"
    words, photograph = nth_form(TABLE["more"], N_LINES * number + n) if n else own, material.PHOTOGRAPHS[notice.behind]
    question = words.format(notice=notice.name, image=photograph.phrase, key=key)
    truth = Truth(boxes=(TruthBox(f"line '{key}'", *box),))
    license = material.joint_license([photograph.license, material.TEXTURE_LICENSE])
    return material.image_row(name, notice.image, question, value, truth, category="OCR", license=license)


class Notice(NamedTuple):
    """A printed notice, and what stands in its lines."""

    image: bytes
    name: str
    behind: str
    lines: tuple[tuple[str, str, Box], ...]
    """Key, value and place of each."""
    line: int
    """Which of them its own question is about."""


@lru_cache(maxsize=2)
def _printed(number: int, seed: int) -> Notice:
    rng = Random(f"{seed}/notice/{number:02d}")
    # kind and photograph meet each other once in the first 32 rows, so that no question is asked twice
    kinds = TABLE["notices"]
    kind = kinds[number % len(kinds)]
    behind = BEHIND[(number + number // len(BEHIND)) % len(BEHIND)]
    values = [_value(content, rng) for _, content in kind["lines"]]
    line = rng.randrange(len(values))
    canvas = _background(behind)
    boxes = _print(canvas, kind, values, rng)
    image = material.jpeg_bytes(canvas.filter(ImageFilter.BoxBlur(0.3)))
    keys = [key for key, _ in kind["lines"]]
    return Notice(image, kind["name"], behind, tuple(zip(keys, values, boxes, strict=True)), line)


def _value(content: str | list[int], rng: Random) -> str:
    """The value of a line: a word of a list, a time, or a number from the first bound and below the second."""
    if content == "time":
        return f"{rng.randrange(7, 22):02d}:{rng.randrange(5, 60, 5):02d}"
    return str(rng.choice(TABLE["words"][content])) if isinstance(content, str) else str(rng.randrange(*content))


def _background(name: str) -> Image.Image:
    whole = material.covering(material.photograph_image(name), *SIZE)
    x, y = (whole.width - SIZE[0]) // 2, (whole.height - SIZE[1]) // 2
    return whole.crop((x, y, x + SIZE[0], y + SIZE[1]))


def _print(canvas: Image.Image, kind: Mapping[str, Any], values: list[str], rng: Random) -> list[Box]:
    """Puts the notice on the canvas; where each of its lines is."""
    width, height = 460, 120 + 62 * len(values)
    x0, top = rng.randint(40, SIZE[0] - width - 40), rng.randint(40, SIZE[1] - height - 40)
    canvas.paste(_paper(width, height, rng), (x0, top))
    draw = ImageDraw.Draw(canvas)
    draw.rectangle((x0, top, x0 + width - 1, top + height - 1), outline=(120, 112, 100), width=2)
    draw.text(
        (x0 + width / 2, top + 44), kind["heading"], fill=INK, font=material.font("DejaVuSans-Bold", 30), anchor="mm"
    )
    draw.line((x0 + 24, top + 76, x0 + width - 24, top + 76), fill=INK, width=3)
    boxes = []
    for place, ((key, _), value) in enumerate(zip(kind["lines"], values, strict=True)):
        at = (x0 + 28, top + 98 + 62 * place)
        line = f"{key}:  {value}"
        face = material.font("DejaVuSans", 30)
        draw.text(at, line, fill=INK, font=face)
        x1, y1, x2, y2 = draw.textbbox(at, line, font=face)
        boxes.append(Box(int(x1), int(y1), int(x2) + 1, int(y2) + 1).grown(6))
    return boxes


def _paper(width: int, height: int, rng: Random) -> Image.Image:
    rough = material.texture("gravel").filter(ImageFilter.BoxBlur(3)).resize((width, height))
    light = rough.point([238 + level * 17 // 255 for level in range(256)])
    tint = rng.choice(PAPERS)
    return Image.merge("RGB", [light.point([level * part // 255 for level in range(256)]) for part in tint])
