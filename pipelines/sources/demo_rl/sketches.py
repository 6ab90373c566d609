r"""Mathematical sketches to be read: lengths, angles and axes stand in the picture. Answers are exact."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

from pipelines.sources.demo.choices import Choices
from pipelines.sources.demo_rl.problem import terms
from pipelines.sources.demo_rl.sheet import COLOURS, INK, PAPER, Asked, sheet, write

_LEGS = ((2, 4), (3, 6), (1, 2), (2, 6), (4, 6), (1, 3), (5, 10), (2, 3))
_PAINTS = tuple(COLOURS)


def right_triangle(rng: Random, n: int) -> Asked:
    """The hypotenuse of a triangle whose legs are labelled: a root."""
    on, (a, b) = sheet(rng), _LEGS[n % len(_LEGS)]
    scale = min(300 / b, 220 / a)
    x, y = rng.randint(70, 100), rng.randint(270, 300)
    right, top = x + b * scale, y - a * scale
    on.draw.polygon(((x, y), (right, y), (x, top)), fill=PAPER, outline=INK, width=3)
    on.draw.rectangle((x, y - 18, x + 18, y), outline=INK, width=2)
    write(on.draw, (x - 26, (y + top) / 2), str(a))
    write(on.draw, ((x + right) / 2, y + 24), str(b))
    letter = "cdexyzst"[n % 8]
    write(on.draw, ((x + right) / 2 + 16, (y + top) / 2 - 16), letter)
    question = f"The two legs of the right triangle are labelled. How long is the side {letter}? Give the exact value."
    return Asked(on.picture, question, Choices((), _root(a * a + b * b)), "maths", None, on.license)


def sector(rng: Random, n: int) -> Asked:
    """The area of a sector whose angle and radius are labelled: a multiple of pi."""
    on, angle, radius = sheet(rng), (60, 90, 120, 45, 150)[n % 5], rng.randint(2, 12)
    x, y, size = rng.randint(180, 300), rng.randint(170, 190), 140
    paint = _PAINTS[n % len(_PAINTS)]
    on.draw.ellipse((x - size, y - size, x + size, y + size), fill=PAPER, outline=INK, width=2)
    on.draw.pieslice((x - size, y - size, x + size, y + size), -angle, 0, fill=COLOURS[paint], outline=INK, width=2)
    write(on.draw, (x + size / 2, y + 16), str(radius))
    middle = math.radians(angle / 2)
    write(on.draw, (x + 52 * math.cos(middle), y - 52 * math.sin(middle)), f"{angle}°", 15)
    area = Fraction(angle * radius * radius, 360)
    question = f"What is the exact area of the {paint} sector, whose radius and angle the picture gives?"
    return Asked(on.picture, question, Choices((), _times_pi(area)), "maths", None, on.license)


def share(rng: Random, n: int) -> Asked:
    """Which share of a disc is painted: a fraction."""
    on, parts = sheet(rng), (8, 12, 10, 9, 16)[n % 5]
    painted = rng.randint(2, parts - 3)
    x, y, size = rng.randint(150, 330), rng.randint(150, 210), 130
    paint = _PAINTS[(n + 2) % len(_PAINTS)]
    for part in range(parts):
        fill = COLOURS[paint] if part < painted else PAPER
        start = 360 * part / parts
        on.draw.pieslice((x - size, y - size, x + size, y + size), start, start + 360 / parts, fill=fill, outline=INK)
    question = f"The disc is cut into equal parts. Which fraction of it is {paint}?"
    return Asked(on.picture, question, Choices((), str(Fraction(painted, parts))), "maths", None, on.license)


def line(rng: Random, n: int) -> Asked:
    """The equation of a line on a grid."""
    on, slope, offset = sheet(rng), (2, -1, 3, -2, 1)[n % 5], rng.choice((-3, -2, 2, 3))
    x0, y0, step = 240, 180, 24
    on.draw.rectangle((72, 12, 408, 348), fill=PAPER)
    for mark in range(-7, 8):
        on.draw.line((x0 + mark * step, 12, x0 + mark * step, 348), fill=(190, 190, 190), width=1)
        on.draw.line((72, y0 + mark * step, 408, y0 + mark * step), fill=(190, 190, 190), width=1)
    on.draw.line((x0, 12, x0, 348), fill=INK, width=2)
    on.draw.line((72, y0, 408, y0), fill=INK, width=2)
    for mark in (-5, 5):
        write(on.draw, (x0 + mark * step, y0 + 12), str(mark), 12)
        write(on.draw, (x0 - 14, y0 - mark * step), str(mark), 12)
    paint = _PAINTS[n % len(_PAINTS)]
    ends = sorted(((7 - offset) / slope, (-7 - offset) / slope))
    left, right = max(-7.0, ends[0]), min(7.0, ends[1])
    course = [(x0 + at * step, y0 - (slope * at + offset) * step) for at in (left, right)]
    on.draw.line((*course[0], *course[1]), fill=COLOURS[paint], width=3)
    question = f"The grid has the unit 1. Give the equation of the {paint} line in the shape y = mx + b."
    answer = f"y = {terms((slope, 'x'), (offset, ''))}"
    return Asked(on.picture, question, Choices((), answer), "maths", None, on.license)


def _root(square: int) -> str:
    r"""``\sqrt{20}`` as ``2\sqrt{5}``."""
    factor = max(side for side in range(1, square) if square % (side * side) == 0)
    return rf"{factor if factor > 1 else ''}\sqrt{{{square // factor**2}}}"


def _times_pi(value: Fraction) -> str:
    if value.denominator == 1:
        return rf"{value.numerator if value != 1 else ''}\pi"
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}\pi"
