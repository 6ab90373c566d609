r"""Problems with a diagram that has to be read: lengths stand in the image and not in the question.

Some answers are no decimal numbers (``36 - 9\pi``), so that grading by math-verify meets real rows.
"""

import io
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

from PIL import Image, ImageDraw

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images.material import LazyRow, font, lazy_rows
from darkroom.pipelines.demo.images.maths import problem_row, solution, written
from darkroom.pipelines.sources import SourceRow

WORDS = data_beside(__file__)
SIZE = (480, 360)
INK, TINT, PAPER = (30, 40, 60), (196, 214, 236), (255, 255, 255)


class Drawn(NamedTuple):
    """An image, the answer, and the values that question and solution name."""

    image: Image.Image
    answer: str
    values: dict[str, Any]


def diagrams(seed: int) -> list[LazyRow]:
    """One problem of each kind, not drawn yet."""
    return lazy_rows("diagram", _row, KINDS, seed)


def _row(row: str, kind: str, seed: int) -> SourceRow:
    image, answer, values = KINDS[kind](Random(f"{seed}/{row}"))
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    words = WORDS[kind]
    details = {"worked": solution(words, values)}
    return problem_row(row, words["question"], answer, details, category="maths", images=(buffer.getvalue(),))


def _right_triangle(rng: Random) -> Drawn:
    a, b, c = rng.choice(((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (20, 21, 29)))
    times = rng.randint(2, 5)
    a, b, c = a * times, b * times, c * times
    image, draw = _sheet()
    draw.polygon(((90, 290), (390, 290), (90, 80)), fill=TINT, outline=INK, width=3)
    draw.rectangle((90, 268, 112, 290), outline=INK, width=2)
    _label(draw, (55, 185), str(a))
    _label(draw, (240, 310), str(b))
    _label(draw, (255, 165), "x")
    return Drawn(image, str(c), {"a": a, "b": b, "square": a * a + b * b})


def _square_less_circle(rng: Random) -> Drawn:
    radius = rng.randint(2, 9)
    image, draw = _sheet()
    draw.rectangle((130, 60, 350, 280), fill=TINT, outline=INK, width=3)
    draw.ellipse((130, 60, 350, 280), fill=PAPER, outline=INK, width=3)
    _label(draw, (240, 300), str(2 * radius))
    side, square = 2 * radius, radius**2
    answer = f"{side**2} - {square if radius > 1 else ''}\\pi"
    return Drawn(image, answer, {"side": side, "area": side**2, "radius": radius, "square": square})


def _trapezoid(rng: Random) -> Drawn:
    top, bottom, height = rng.randint(3, 9), rng.randint(10, 18), rng.randint(3, 9)
    image, draw = _sheet()
    draw.polygon(((160, 80), (320, 80), (410, 280), (70, 280)), fill=TINT, outline=INK, width=3)
    draw.line((200, 80, 200, 280), fill=INK, width=2)
    _label(draw, (240, 55), str(top))
    _label(draw, (240, 305), str(bottom))
    _label(draw, (225, 180), str(height))
    area = Fraction((top + bottom) * height, 2)
    return Drawn(image, written(area), {"top": top, "bottom": bottom, "height": height})


def _bars(rng: Random) -> Drawn:
    values = [rng.randint(11, 95) for _ in range(5)]
    image, draw = _sheet()
    for n, (name, value) in enumerate(zip(("Mon", "Tue", "Wed", "Thu", "Fri"), values, strict=True)):
        x = 60 + 78 * n
        draw.rectangle((x, 300 - 2 * value, x + 50, 300), fill=TINT, outline=INK, width=2)
        _label(draw, (x + 25, 288 - 2 * value), str(value))
        _label(draw, (x + 25, 320), name)
    listed = ", ".join(map(str, values))
    mean = Fraction(sum(values), len(values))
    return Drawn(image, written(mean), {"values": values, "listed": listed, "sum": sum(values)})


def _sheet() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", SIZE, PAPER)
    return image, ImageDraw.Draw(image)


def _label(draw: ImageDraw.ImageDraw, centre: tuple[int, int], text: str) -> None:
    draw.text(centre, text, fill=INK, font=font("DejaVuSans", 22), anchor="mm")


KINDS: dict[str, Callable[[Random], Drawn]] = {
    "right_triangle": _right_triangle,
    "square_less_circle": _square_less_circle,
    "trapezoid": _trapezoid,
    "bars": _bars,
}
