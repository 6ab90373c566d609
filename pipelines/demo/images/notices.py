"""Printed notices in front of real photographs, of moderate size, with a question about one line of the print.

For the families that turn and fade images: the print is large enough to be read from the whole image once it is
upright and has its contrast. ``truth.boxes`` holds the printed line.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from PIL import Image, ImageDraw, ImageFilter

from pipelines.demo import data_beside
from pipelines.demo.images.material import (
    PHOTOGRAPHS,
    TEXTURE_LICENSE,
    LazyRow,
    font,
    joint_license,
    jpeg_bytes,
    lazy_rows,
    photograph_image,
    texture,
)
from pipelines.records import Truth, TruthBox
from pipelines.records.geometry import Box
from pipelines.sources import SourceRow

SIZE = (800, 600)
N_NOTICES = 24
BEHIND = ("astronaut", "cat", "coffee", "rocket", "pagoda", "flower", "motorcycle", "camera")
INK = (34, 32, 36)
PAPERS = ((246, 243, 234), (232, 238, 242), (248, 236, 214), (236, 244, 230))
TABLE = data_beside(__file__)


def notices(seed: int) -> list[LazyRow]:
    """The notices by name, not printed yet."""
    return lazy_rows("notice", _notice, range(N_NOTICES), seed)


def _notice(row: str, number: int, seed: int) -> SourceRow:
    rng = Random(f"{seed}/{row}")
    # kind and photograph meet each other once in the first 32 rows, so that no question is asked twice
    kinds = TABLE["notices"]
    kind, behind = kinds[number % len(kinds)], BEHIND[(number + number // len(BEHIND)) % len(BEHIND)]
    values = [_value(told, rng) for _, told in kind["lines"]]
    line = rng.randrange(len(values))
    canvas = _background(behind)
    boxes = _print(canvas, kind, values, rng)
    key, value = kind["lines"][line][0], values[line]
    return SourceRow(
        row=row,
        images=(jpeg_bytes(canvas.filter(ImageFilter.BoxBlur(0.3))),),
        question=f"What does the {kind['name']} in front of {PHOTOGRAPHS[behind].phrase} give as '{key}'?",
        answer=value,
        truth=Truth(boxes=(TruthBox(f"line '{key}'", *boxes[line]),)),
        category="OCR",
        license=joint_license([PHOTOGRAPHS[behind].license, TEXTURE_LICENSE]),
    )


def _value(told: str | list[int], rng: Random) -> str:
    """What a line tells: one of the words of a list, a time, or a number from the first bound and below the second."""
    if told == "time":
        return f"{rng.randrange(7, 22):02d}:{rng.randrange(5, 60, 5):02d}"
    return str(rng.choice(TABLE["words"][told])) if isinstance(told, str) else str(rng.randrange(*told))


def _background(name: str) -> Image.Image:
    """The middle of a photograph, as large as the canvas."""
    image, (width, height) = photograph_image(name), SIZE
    scale = max(width / image.width, height / image.height)
    whole = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS)
    x, y = (whole.width - width) // 2, (whole.height - height) // 2
    return whole.crop((x, y, x + width, y + height))


def _print(canvas: Image.Image, kind: Mapping[str, Any], values: list[str], rng: Random) -> list[Box]:
    """Puts the notice on the canvas; where each of its lines is."""
    width, height = 460, 120 + 62 * len(values)
    x0, top = rng.randint(40, SIZE[0] - width - 40), rng.randint(40, SIZE[1] - height - 40)
    canvas.paste(_paper(width, height, rng), (x0, top))
    draw = ImageDraw.Draw(canvas)
    draw.rectangle((x0, top, x0 + width - 1, top + height - 1), outline=(120, 112, 100), width=2)
    draw.text((x0 + width / 2, top + 44), kind["heading"], fill=INK, font=font("DejaVuSans-Bold", 30), anchor="mm")
    draw.line((x0 + 24, top + 76, x0 + width - 24, top + 76), fill=INK, width=3)
    boxes = []
    for place, ((key, _), value) in enumerate(zip(kind["lines"], values, strict=True)):
        at = (x0 + 28, top + 98 + 62 * place)
        line = f"{key}:  {value}"
        face = font("DejaVuSans", 30)
        draw.text(at, line, fill=INK, font=face)
        x1, y1, x2, y2 = draw.textbbox(at, line, font=face)
        boxes.append(Box(int(x1), int(y1), int(x2) + 1, int(y2) + 1).grown(6))
    return boxes


def _paper(width: int, height: int, rng: Random) -> Image.Image:
    rough = texture("gravel").filter(ImageFilter.BoxBlur(3)).resize((width, height))
    light = rough.point([238 + level * 17 // 255 for level in range(256)])
    tint = rng.choice(PAPERS)
    return Image.merge("RGB", [light.point([level * part // 255 for level in range(256)]) for part in tint])
