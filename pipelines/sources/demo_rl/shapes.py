"""Lettered shapes of all sizes on a sheet: which colour, which shape, how many, where, which letters."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from PIL import ImageDraw

from pipelines.geometry import Box
from pipelines.sources.demo.choices import Choices, lettered
from pipelines.sources.demo_rl.sheet import COLOURS, INK, PAPER, SIZE, Asked, Sheet, sheet, write

LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
FORMS = ("circle", "square", "triangle", "diamond")
_SIDES = ((15, 26), (30, 60), (50, 104))
"""Pixels: tiny, small and middling shapes; the fourth kind of sheet has few, large ones."""
_COLOUR = (
    "Which colour is the {} marked {}?",
    "What colour has the {} with the letter {}?",
    "Find the {} that bears {}: its colour?",
)
_BOX = (
    "Where is the {} with the letter {}? Give its bounding box as [x1, y1, x2, y2] in pixels of the image.",
    "Give the bounding box of the {} marked {}, as [x1, y1, x2, y2] in pixels of the image.",
    "Locate the {} that bears {}. Answer with the box [x1, y1, x2, y2] around it, in pixels.",
)
_LETTERS = (
    "Which letters stand on a {}? List all of them {}, separated by commas.",
    "List the letters of every {} on the sheet, {} and separated by commas.",
    "Each {} has a letter. Which letters are these? Give them {}, separated by commas.",
    "Look for the form {} alone and list its letters {}, separated by commas.",
)
_DARK = ("red", "blue", "green", "violet")


class Shape(NamedTuple):
    """One shape: its form, its colour, the letter on it, and where it is."""

    form: str
    colour: str
    letter: str
    box: Box


def colour_of_a_shape(rng: Random, n: int) -> Asked:
    """Which colour a lettered shape has."""
    on, shapes = _drawn(rng, n)
    shape = rng.choice(shapes)
    wrong = rng.sample([colour for colour in COLOURS if colour != shape.colour], 3)
    choices = lettered(shape.colour, wrong, place=n, rng=rng)
    question = _COLOUR[(n + n // 4) % 3].format(shape.form, shape.letter)
    return _asked(on, question, choices, "attribute", shape)


def form_of_a_shape(rng: Random, n: int) -> Asked:
    """Which form carries a letter."""
    on, shapes = _drawn(rng, n)
    shape = rng.choice(shapes)
    choices = lettered(shape.form, [form for form in FORMS if form != shape.form], place=n, rng=rng)
    return _asked(on, f"What kind of shape carries the letter {shape.letter}?", choices, "object", shape)


def place_of_a_shape(rng: Random, n: int) -> Asked:
    """Where a shape is, as a box."""
    on, shapes = _drawn(rng, n)
    shape = rng.choice(shapes)
    question = _BOX[(n + n // 4) % 3].format(f"{shape.colour} {shape.form}", shape.letter)
    return _asked(on, question, Choices((), str(list(shape.box))), "location", shape)


def number_of_shapes(rng: Random, n: int) -> Asked:
    """How many shapes of a form or a colour there are."""
    on, shapes = _drawn(rng, n)
    shape, left_out = rng.sample(shapes, 2)
    by_form = bool(n % 2) and len(shapes) > 2
    what = f"{shape.form}s" if by_form else f"{shape.colour} shapes"
    counted = [other for other in shapes if (other.form == shape.form if by_form else other.colour == shape.colour)]
    count = sum(other is not left_out for other in counted)
    question = f"Not counting the one marked {left_out.letter}, how many {what} are on this sheet?"
    return _asked(on, question, Choices((), str(count)), "quantity", None)


def letters_on_shapes(rng: Random, n: int) -> Asked:
    """Which letters the shapes of a form carry, in any order or in that of the alphabet."""
    on, shapes = _drawn(rng, n % 3)
    forms = [form for form in FORMS if sum(shape.form == form for shape in shapes) > 1]
    form, ordered = rng.choice(forms), n % 2 == 0
    letters = sorted(shape.letter for shape in shapes if shape.form == form)
    how = "in alphabetical order" if ordered else "in any order"
    question = _LETTERS[n // 2 % 4].format(form, how)
    details = {"grader": {"kind": "list", "is_ordered": ordered}}
    return _asked(on, question, Choices((), ", ".join(letters)), "attribute", None)._replace(details=details)


def _asked(on: Sheet, question: str, choices: Choices, category: str, shape: Shape | None) -> Asked:
    target = (f"{shape.form} {shape.letter}", shape.box) if shape else None
    return Asked(on.picture, question, choices, category, target, on.license)


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
        shapes.append(
            Shape(
                FORMS[(place + rng.randrange(2)) % 4], rng.choice(tuple(COLOURS)), letter, Box(x, y, x + side, y + side)
            )
        )
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
