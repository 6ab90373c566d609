r"""Problems with a diagram that has to be read: lengths stand in the image and not in the question.

Some answers are no decimal numbers (``36 - 9\pi``), so that grading by math-verify meets real rows.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

from PIL import Image, ImageDraw

from pipelines.demo.images.material import LazyRow, font
from pipelines.records import Truth
from pipelines.records.samples import ReferenceSolution
from pipelines.sources import SourceRow

SIZE = (480, 360)
INK, TINT, PAPER = (30, 40, 60), (196, 214, 236), (255, 255, 255)


class Drawn(NamedTuple):
    """An image and what is asked of it."""

    image: Image.Image
    question: str
    answer: str
    worked: ReferenceSolution


def diagrams(seed: int) -> list[LazyRow]:
    """One problem of each kind, not drawn yet."""
    numbered = enumerate(KINDS)
    return [LazyRow(f"diagram/{number:02d}", partial(_row, number, kind, seed)) for number, kind in numbered]


def _row(number: int, kind: Callable[[Random], Drawn], seed: int) -> SourceRow:
    row = f"diagram/{number:02d}"
    diagram = kind(Random(f"{seed}/{row}"))
    buffer = io.BytesIO()
    diagram.image.save(buffer, format="PNG")
    return SourceRow(
        row=row,
        images=(buffer.getvalue(),),
        question=diagram.question,
        answer=diagram.answer,
        truth=Truth(details=json.dumps({"worked": diagram.worked.as_json()}, sort_keys=True)),
        category="maths",
        license="Apache-2.0",
    )


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
    return Drawn(
        image,
        "The picture shows a right triangle. How long is the side marked x?",
        str(c),
        ReferenceSolution(
            idea="The two legs of the right triangle are labelled, and x is the hypotenuse: Pythagoras gives it.",
            steps=(f"The legs are {a} and {b}.", f"Their squares add up to {a * a + b * b}, the square of x."),
            programs=(
                f"from math import isqrt\n\nleg, other = {a}, {b}\nx = isqrt(leg**2 + other**2)\nprint(x)",
                "print(x**2 - leg**2 - other**2)\nprint(x)",
            ),
            seen="the length of x",
        ),
    )


def _square_less_circle(rng: Random) -> Drawn:
    radius = rng.randint(2, 9)
    image, draw = _sheet()
    draw.rectangle((130, 60, 350, 280), fill=TINT, outline=INK, width=3)
    draw.ellipse((130, 60, 350, 280), fill=PAPER, outline=INK, width=3)
    _label(draw, (240, 300), str(2 * radius))
    return Drawn(
        image,
        "A circle is inscribed in the square in the picture. What is the exact area of the shaded region?",
        f"{4 * radius**2} - {radius**2 if radius > 1 else ''}\\pi",
        ReferenceSolution(
            idea="The shaded region is the square without the circle, whose diameter is the side of the square.",
            steps=(
                f"The side is {2 * radius}, so the square has the area {4 * radius**2}.",
                f"The radius is {radius}, so the circle has the area {radius**2} times pi.",
            ),
            programs=(f"from sympy import pi\n\nside = {2 * radius}\nprint(side**2 - pi * (side // 2) ** 2)",),
            seen="the shaded area",
        ),
    )


def _trapezoid(rng: Random) -> Drawn:
    top, bottom, height = rng.randint(3, 9), rng.randint(10, 18), rng.randint(3, 9)
    image, draw = _sheet()
    draw.polygon(((160, 80), (320, 80), (410, 280), (70, 280)), fill=TINT, outline=INK, width=3)
    draw.line((200, 80, 200, 280), fill=INK, width=2)
    _label(draw, (240, 55), str(top))
    _label(draw, (240, 305), str(bottom))
    _label(draw, (225, 180), str(height))
    twice = (top + bottom) * height
    return Drawn(
        image,
        "What is the area of the trapezoid in the picture? The line inside is its height.",
        str(twice // 2) if twice % 2 == 0 else str(twice / 2),
        ReferenceSolution(
            idea="The area of a trapezoid is its height times the mean of its parallel sides.",
            steps=(f"The parallel sides are {top} and {bottom}, the height is {height}.",),
            programs=(
                f"top, bottom, height = {top}, {bottom}, {height}\narea = (top + bottom) * height / 2\nprint(area)",
                "rectangle, corners = top * height, (bottom - top) * height / 2\nprint(rectangle + corners)",
            ),
            seen="the area",
        ),
    )


def _bars(rng: Random) -> Drawn:
    values = [rng.randint(11, 95) for _ in range(5)]
    image, draw = _sheet()
    for n, (name, value) in enumerate(zip(("Mon", "Tue", "Wed", "Thu", "Fri"), values, strict=True)):
        x = 60 + 78 * n
        draw.rectangle((x, 300 - 2 * value, x + 50, 300), fill=TINT, outline=INK, width=2)
        _label(draw, (x + 25, 288 - 2 * value), str(value))
        _label(draw, (x + 25, 320), name)
    mean = sum(values) / len(values)
    return Drawn(
        image,
        "The bars show how many visitors came on each day. What is the mean number of visitors per day?",
        str(int(mean)) if mean == int(mean) else str(mean),
        ReferenceSolution(
            idea="Each bar carries its number, so the mean is their sum over the number of days.",
            steps=(f"The numbers are {', '.join(map(str, values))}.", f"They add up to {sum(values)}."),
            programs=(f"visitors = {values}\nprint(sum(visitors) / len(visitors))",),
            seen="the mean",
        ),
    )


def _sheet() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", SIZE, PAPER)
    return image, ImageDraw.Draw(image)


def _label(draw: ImageDraw.ImageDraw, centre: tuple[int, int], text: str) -> None:
    draw.text(centre, text, fill=INK, font=font("DejaVuSans", 22), anchor="mm")


KINDS: tuple[Callable[[Random], Drawn], ...] = (_right_triangle, _square_less_circle, _trapezoid, _bars)
