"""A small sheet to draw on, over a part of a packaged photograph, and the row that a question about it becomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, NamedTuple

from PIL import Image, ImageDraw

from pipelines.geometry import Box
from pipelines.records import Truth, TruthBox
from pipelines.sources.base import SourceRow
from pipelines.sources.demo.choices import Choices
from pipelines.sources.demo.lazy import LazyRow
from pipelines.sources.demo.material import PHOTOGRAPHS, font, jpeg_bytes, photograph_image

SIZE = (480, 360)
INK, PAPER = (28, 32, 44), (250, 248, 240)
COLOURS = {
    "red": (204, 44, 40),
    "blue": (40, 84, 188),
    "green": (38, 142, 62),
    "yellow": (240, 206, 44),
    "violet": (134, 66, 168),
    "orange": (238, 132, 30),
}
_BEHIND = ("astronaut", "cat", "coffee", "coins", "rocket", "pagoda", "flower", "motorcycle", "camera", "horse")
_SHARE_OF_PAPER = 0.62


class Asked(NamedTuple):
    """A picture, what is asked of it, and what is known: the target's label and box, and ``truth.details``."""

    picture: Image.Image
    question: str
    choices: Choices
    category: str
    target: tuple[str, Box] | None
    license: str
    details: Mapping[str, Any] = {}


Kind = Callable[[Random, int], Asked]
"""Makes the n-th question of its kind."""


class Sheet(NamedTuple):
    """A faint photograph to draw on, and its licence."""

    picture: Image.Image
    draw: ImageDraw.ImageDraw
    license: str


def sheet(rng: Random, size: tuple[int, int] = SIZE) -> Sheet:
    """Part of a photograph, mostly covered by paper, so that no two sheets look alike."""
    name = rng.choice(_BEHIND)
    photograph, (width, height) = photograph_image(name), size
    across = rng.randint(120, min(photograph.width, photograph.height * width // height))
    down = across * height // width
    x, y = rng.randrange(photograph.width - across + 1), rng.randrange(photograph.height - down + 1)
    part = photograph.resize(size, Image.Resampling.BILINEAR, (x, y, x + across, y + down))
    picture = Image.blend(part, Image.new("RGB", size, PAPER), _SHARE_OF_PAPER)
    return Sheet(picture, ImageDraw.Draw(picture), PHOTOGRAPHS[name].license)


def write(draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, size: int = 18, fill: Any = INK) -> None:
    """A text with its middle at a place."""
    draw.text(at, text, fill=fill, font=font("DejaVuSans-Bold", size), anchor="mm")


def questions(name: str, kind: Kind, n: int, seed: int) -> list[LazyRow]:
    """``n`` questions of a kind by name, not drawn yet."""
    rows = [f"{name}/{number:02d}" for number in range(n)]
    return [LazyRow(row, partial(_row, row, kind, number, seed)) for number, row in enumerate(rows)]


def _row(row: str, kind: Kind, number: int, seed: int) -> SourceRow:
    return as_row(row, kind(Random(f"{seed}/{row}"), number))


def as_row(row: str, asked: Asked) -> SourceRow:
    """The row of a question."""
    boxes = (TruthBox(asked.target[0], *asked.target[1]),) if asked.target else ()
    details = json.dumps(dict(asked.details), sort_keys=True) if asked.details else None
    return SourceRow(
        row=row,
        images=(jpeg_bytes(asked.picture),),
        question=asked.question,
        answer=asked.choices.answer,
        choices=asked.choices.options,
        truth=Truth(boxes=boxes, details=details),
        category=asked.category,
        license=asked.license,
    )
