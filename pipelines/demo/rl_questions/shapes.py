"""Lettered shapes of all sizes on a sheet: which colour, which shape, how many, where, which letters."""

import math
from fractions import Fraction
from operator import attrgetter
from random import Random
from typing import NamedTuple

from PIL import ImageDraw

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images.material import lettered
from darkroom.pipelines.demo.images.maths import terms
from darkroom.pipelines.demo.rl_questions.questions import (
    COLOURS,
    INK,
    PAINTS,
    PAPER,
    SIZE,
    DrawnQuestion,
    Sheet,
    sheet,
    write,
)
from darkroom.pipelines.records.geometry import Box

LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
FORMS = ("circle", "square", "triangle", "diamond")
_SIDES = ((15, 26), (30, 60), (50, 104))
"""Pixels: tiny, small and middling shapes; the fourth kind of sheet has few, large ones."""
_WORDS = data_beside(__file__)
_DARK = ("red", "blue", "green", "violet")


class Shape(NamedTuple):
    """One shape: its form, its colour, the letter on it, and where it is."""

    form: str
    colour: str
    letter: str
    box: Box


def colour_of_a_shape(rng: Random, n: int) -> DrawnQuestion:
    on, shapes = _drawn(rng, n)
    shape = rng.choice(shapes)
    wrong = rng.sample([colour for colour in COLOURS if colour != shape.colour], 3)
    choices = lettered(shape.colour, wrong, place=n, rng=rng)
    question = _WORDS["colour"][(n + n // 4) % 3].format(shape.form, shape.letter)
    return on.asks(question, choices, "attribute", _target(shape))


def form_of_a_shape(rng: Random, n: int) -> DrawnQuestion:
    on, shapes = _drawn(rng, n)
    shape = rng.choice(shapes)
    choices = lettered(shape.form, [form for form in FORMS if form != shape.form], place=n, rng=rng)
    return on.asks(f"What kind of shape carries the letter {shape.letter}?", choices, "object", _target(shape))


def place_of_a_shape(rng: Random, n: int) -> DrawnQuestion:
    on, shapes = _drawn(rng, n)
    shape = rng.choice(shapes)
    question = _WORDS["box"][(n + n // 4) % 3].format(f"{shape.colour} {shape.form}", shape.letter)
    return on.asks(question, str(list(shape.box)), "location", _target(shape))


def number_of_shapes(rng: Random, n: int) -> DrawnQuestion:
    on, shapes = _drawn(rng, n)
    shape, left_out = rng.sample(shapes, 2)
    by_form = bool(n % 2) and len(shapes) > 2
    what = f"{shape.form}s" if by_form else f"{shape.colour} shapes"
    property_of = attrgetter("form" if by_form else "colour")
    counted = [candidate for candidate in shapes if property_of(candidate) == property_of(shape)]
    question = f"Not counting the one marked {left_out.letter}, how many {what} are on this sheet?"
    return on.asks(question, str(sum(candidate is not left_out for candidate in counted)), "quantity")


def letters_on_shapes(rng: Random, n: int) -> DrawnQuestion:
    """Letters of the shapes of a form, in any order or in that of the alphabet."""
    on, shapes = _drawn(rng, n % 3)
    forms = [form for form in FORMS if sum(shape.form == form for shape in shapes) > 1]
    form, ordered = rng.choice(forms), n % 2 == 0
    letters = sorted(shape.letter for shape in shapes if shape.form == form)
    how = "in alphabetical order" if ordered else "in any order"
    question = _WORDS["letters"][n // 2 % 4].format(form, how)
    return on.asks(question, ", ".join(letters), "attribute", grader={"kind": "list", "is_ordered": ordered})


def _target(shape: Shape) -> tuple[str, Box]:
    return f"{shape.form} {shape.letter}", shape.box


def _drawn(rng: Random, n: int) -> tuple[Sheet, list[Shape]]:
    """A sheet with one shape in each cell of a grid: tiny, small, middling or large ones in turn."""
    columns, rows = ((7, 3), (5, 4), (4, 3), (2, 1))[n % 4]
    on = sheet(rng)
    wide, high = SIZE[0] // columns, SIZE[1] // rows
    letters = rng.sample(LETTERS, columns * rows)
    shapes = []
    for place, letter in enumerate(letters):
        low, top = _SIDES[n % 4] if n % 4 < 3 else (150, 210)
        side = rng.randint(low, min(top, wide - 6, high - 6))
        x = place % columns * wide + rng.randint(2, wide - side - 2)
        y = place // columns * high + rng.randint(2, high - side - 2)
        # neighbours in the list of forms, so that every form is there several times
        form = FORMS[(place + rng.randrange(2)) % 4]
        shapes.append(Shape(form, rng.choice(PAINTS), letter, Box(x, y, x + side, y + side)))
        _draw(on.draw, shapes[-1])
    return on, shapes


def _draw(draw: ImageDraw.ImageDraw, shape: Shape) -> None:
    x1, y1, x2, y2 = shape.box.x1, shape.box.y1, shape.box.x2 - 1, shape.box.y2 - 1
    paint, middle = COLOURS[shape.colour], ((x1 + x2) / 2, (y1 + y2) / 2)
    corners = {
        "triangle": ((middle[0], y1), (x2, y2), (x1, y2)),
        "diamond": ((middle[0], y1), (x2, middle[1]), (middle[0], y2), (x1, middle[1])),
    }
    if shape.form == "circle":
        draw.ellipse((x1, y1, x2, y2), fill=paint)
    elif shape.form == "square":
        draw.rectangle((x1, y1, x2, y2), fill=paint)
    else:
        draw.polygon(corners[shape.form], fill=paint)
    drop = shape.box.height / 6 if shape.form == "triangle" else 0
    size = max(9, shape.box.height * 2 // 5)
    write(draw, (middle[0], middle[1] + drop), shape.letter, size, PAPER if shape.colour in _DARK else INK)


_LEGS = ((2, 4), (3, 6), (1, 2), (2, 6), (4, 6), (1, 3), (5, 10), (2, 3))


def right_triangle(rng: Random, n: int) -> DrawnQuestion:
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
    return on.asks(question, _root(a * a + b * b), "maths")


def sector(rng: Random, n: int) -> DrawnQuestion:
    """The area of a sector whose angle and radius are labelled: a multiple of pi."""
    on, angle, radius = sheet(rng), (60, 90, 120, 45, 150)[n % 5], rng.randint(2, 12)
    x, y, size = rng.randint(180, 300), rng.randint(170, 190), 140
    paint = PAINTS[n % len(PAINTS)]
    on.draw.ellipse((x - size, y - size, x + size, y + size), fill=PAPER, outline=INK, width=2)
    on.draw.pieslice((x - size, y - size, x + size, y + size), -angle, 0, fill=COLOURS[paint], outline=INK, width=2)
    write(on.draw, (x + size / 2, y + 16), str(radius))
    middle = math.radians(angle / 2)
    write(on.draw, (x + 52 * math.cos(middle), y - 52 * math.sin(middle)), f"{angle}°", 15)
    question = f"What is the exact area of the {paint} sector, whose radius and angle the picture gives?"
    return on.asks(question, _times_pi(Fraction(angle * radius * radius, 360)), "maths")


def share(rng: Random, n: int) -> DrawnQuestion:
    """Painted share of a disc, a fraction."""
    on, parts = sheet(rng), (8, 12, 10, 9, 16)[n % 5]
    painted = rng.randint(2, parts - 3)
    x, y, size = rng.randint(150, 330), rng.randint(150, 210), 130
    paint = PAINTS[(n + 2) % len(PAINTS)]
    for part in range(parts):
        fill = COLOURS[paint] if part < painted else PAPER
        start = 360 * part / parts
        on.draw.pieslice((x - size, y - size, x + size, y + size), start, start + 360 / parts, fill=fill, outline=INK)
    question = f"The disc is cut into equal parts. Which fraction of it is {paint}?"
    return on.asks(question, str(Fraction(painted, parts)), "maths")


def line(rng: Random, n: int) -> DrawnQuestion:
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
    paint = PAINTS[n % len(PAINTS)]
    ends = sorted(((7 - offset) / slope, (-7 - offset) / slope))
    x1, x2 = max(-7.0, ends[0]), min(7.0, ends[1])
    course = [(x0 + at * step, y0 - (slope * at + offset) * step) for at in (x1, x2)]
    on.draw.line((*course[0], *course[1]), fill=COLOURS[paint], width=3)
    question = f"The grid has the unit 1. Give the equation of the {paint} line in the shape y = mx + b."
    return on.asks(question, f"y = {terms((slope, 'x'), (offset, ''))}", "maths")


def _root(square: int) -> str:
    r"""``\sqrt{20}`` as ``2\sqrt{5}``."""
    factor = max(side for side in range(1, square) if square % (side * side) == 0)
    return rf"{factor if factor > 1 else ''}\sqrt{{{square // factor**2}}}"


def _times_pi(value: Fraction) -> str:
    if value.denominator == 1:
        return rf"{value.numerator if value != 1 else ''}\pi"
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}\pi"
