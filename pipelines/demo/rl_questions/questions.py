"""Questions about drawings on a small sheet over part of a packaged photograph, and their rows."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, NamedTuple

from PIL import Image, ImageDraw

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images import material
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.sources import SourceRow

SIZE = (480, 360)
INK, PAPER = (28, 32, 44), (250, 248, 240)
WORDS = data_beside(__file__)
COLOURS: dict[str, tuple[int, ...]] = {name: tuple(rgb) for name, rgb in WORDS["colours"].items()}
PAINTS = tuple(COLOURS)
"""Names of the colours."""
SHOWN = ("astronaut", "cat", "coffee", "coins", "rocket", "pagoda", "flower", "retina", "camera", "horse")
"""Photographs that sheets are made of."""
_SHARE_OF_PAPER = 0.62


class DrawnQuestion(NamedTuple):
    """An image, what is asked of it, and what is known: the target's label and box, and ``truth.details``."""

    image: Image.Image
    question: str
    answer: str | material.Choices
    """A text is the answer of an open question."""
    category: str
    license: str
    target: tuple[str, Box] | None = None
    details: Mapping[str, Any] = {}


DrawnKind = Callable[[Random, int], DrawnQuestion]
"""Makes the n-th question of its kind."""


class Sheet(NamedTuple):
    """A faint photograph to draw on, and its licence."""

    image: Image.Image
    draw: ImageDraw.ImageDraw
    license: str

    def bar(self, sides: tuple[int, int, int, int], colour: str) -> Box:
        box = Box(*sides)
        self.draw.rectangle((box.x1, box.y1, box.x2 - 1, box.y2 - 1), fill=COLOURS[colour])
        return box

    def asks(
        self,
        question: str,
        answer: str | material.Choices,
        category: str,
        target: tuple[str, Box] | None = None,
        **details: object,
    ) -> DrawnQuestion:
        return DrawnQuestion(self.image, question, answer, category, self.license, target=target, details=details)


def sheet(rng: Random) -> Sheet:
    """Part of a photograph, mostly covered by paper, so that no two sheets look alike."""
    name = rng.choice(SHOWN)
    photograph, (width, height) = material.photograph_image(name), SIZE
    across = rng.randint(120, min(photograph.width, photograph.height * width // height))
    down = across * height // width
    x, y = rng.randrange(photograph.width - across + 1), rng.randrange(photograph.height - down + 1)
    part = photograph.resize(SIZE, Image.Resampling.BILINEAR, (x, y, x + across, y + down))
    image = Image.blend(part, Image.new("RGB", SIZE, PAPER), _SHARE_OF_PAPER)
    return Sheet(image, ImageDraw.Draw(image), material.PHOTOGRAPHS[name].license)


def write(draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, size: int = 18, fill: Any = INK) -> None:
    """A text with its middle at a place."""
    draw.text(at, text, fill=fill, font=material.font("DejaVuSans-Bold", size), anchor="mm")


def questions(name: str, kind: DrawnKind, n: int, seed: int) -> list[material.LazyRow]:
    return material.lazy_rows(name, partial(_drawn_row, kind), range(n), seed)


def _drawn_row(kind: DrawnKind, row: str, number: int, seed: int) -> SourceRow:
    return as_row(row, kind(Random(f"{seed}/{row}"), number))


def as_row(row: str, question: DrawnQuestion) -> SourceRow:
    boxes = (TruthBox(question.target[0], *question.target[1]),) if question.target else ()
    details = json.dumps(dict(question.details), sort_keys=True) if question.details else None
    image, truth = material.jpeg_bytes(question.image), Truth(boxes=boxes, details=details)
    about = {"category": question.category, "license": question.license}
    return material.image_row(row, image, question.question, question.answer, truth, **about)
