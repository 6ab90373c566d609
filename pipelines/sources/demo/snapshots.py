"""Photographs as careless hands leave them: turned on their side, underexposed, or both, with a question each.

``truth.angle`` is how far the picture has been turned, in degrees counter-clockwise; ``truth.contrast`` the share of
its tonal range that is left. No file says so: there is no EXIF orientation to put it right.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import NamedTuple

from PIL import Image

from pipelines.records import Truth
from pipelines.sources.base import SourceRow
from pipelines.sources.demo.choices import Choices, lettered
from pipelines.sources.demo.lazy import LazyRow
from pipelines.sources.demo.material import PHOTOGRAPHS, jpeg_bytes, photograph_image

DARKEST = 9
"""The grey level that black has in an underexposed picture."""
_TURNS = {90: Image.Transpose.ROTATE_90, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_270}


class Snapshot(NamedTuple):
    """A photograph, what is asked about it, and what went wrong; no ``wrong`` options make it an open question."""

    photograph: str
    category: str
    question: str
    answer: str
    wrong: tuple[str, ...]
    angle: int | None = None
    contrast: float | None = None


SNAPSHOTS = (
    Snapshot("page", "OCR", "What is the heading of this printed page?", "Region-based segmentation", (), 180),
    Snapshot("page", "OCR", "Which word follows 'Let' in the first line below the heading?", "us", (), 90),
    Snapshot(
        *("page", "OCR", "At which parts of the histogram are the markers found, does this page say?"),
        "the two extreme parts",
        ("the middle part", "the first half", "all parts"),
        270,
    ),
    Snapshot(
        *("astronaut", "location", "With the astronaut upright, on which side of her is the flag?", "left"),
        ("right", "above", "below"),
        90,
    ),
    Snapshot(
        *("camera", "location", "Seen upright, on which side of the man does his tripod stand?", "right"),
        ("left", "above", "below"),
        180,
    ),
    Snapshot(
        *("motorcycle", "location", "Which way would the motorcycle drive off if it stood on its wheels?", "right"),
        ("left", "up", "down"),
        270,
    ),
    Snapshot(
        *("pagoda", "location", "With the roof on top, on which side of the tower can one see the lake?", "right"),
        ("left", "above", "below"),
        180,
    ),
    Snapshot(
        *("page", "OCR", "This page has been printed faintly. Which word comes before 'segmentation'?"),
        "Region-based",
        (),
        contrast=0.13,
    ),
    Snapshot(
        *("coffee", "object", "What is the dark scene about: what stands in the saucer?", "a cup"),
        ("a candle", "a flower pot", "a bell"),
        contrast=0.12,
    ),
    Snapshot(
        *("motorcycle", "object", "Which vehicle can be made out in the gloom of this room?", "motorcycle"),
        ("bicycle", "tractor", "sledge"),
        contrast=0.1,
    ),
    Snapshot(
        *("pagoda", "object", "What sort of building rises in this murky view?", "pagoda"),
        ("lighthouse", "factory", "cathedral"),
        contrast=0.14,
    ),
    Snapshot(
        *("flower", "object", "What fills the middle of this very dark picture?", "a flower"),
        ("a clock", "a shell", "a hat"),
        contrast=0.11,
    ),
    Snapshot(
        *("page", "OCR", "Which function of np does the program line at the bottom call?", "zeros_like"),
        (),
        180,
        0.16,
    ),
    Snapshot(
        *("astronaut", "location", "In the upright portrait, on which side does the model of the rocket stand?"),
        "right",
        ("left", "above", "below"),
        270,
        0.14,
    ),
    Snapshot(
        *("coffee", "location", "Once the dark table is the right way up, where does the spoon lie?"),
        "right of the handle",
        ("above the cup", "inside the cup", "left of the saucer"),
        90,
        0.15,
    ),
)


def snapshots(seed: int) -> list[LazyRow]:
    """The snapshots by name, not made yet."""
    names = [f"snapshot/{number:02d}" for number in range(len(SNAPSHOTS))]
    return [
        LazyRow(name, partial(_snapshot, name, number, shot, seed))
        for number, (name, shot) in enumerate(zip(names, SNAPSHOTS, strict=True))
    ]


def _snapshot(row: str, number: int, shot: Snapshot, seed: int) -> SourceRow:
    choices = Choices((), shot.answer)
    if shot.wrong:
        choices = lettered(shot.answer, shot.wrong, place=number + seed, rng=Random(f"{seed}/{row}"))
    return SourceRow(
        row=row,
        images=(jpeg_bytes(_taken(shot), quality=95),),
        question=shot.question,
        answer=choices.answer,
        choices=choices.options,
        truth=Truth(angle=shot.angle, contrast=shot.contrast),
        category=shot.category,
        license=PHOTOGRAPHS[shot.photograph].license,
    )


def _taken(shot: Snapshot) -> Image.Image:
    picture = photograph_image(shot.photograph)
    if shot.contrast is not None:
        levels = [DARKEST + round(level * shot.contrast) for level in range(256)]
        picture = picture.point(levels * len(picture.getbands()))
    return picture if shot.angle is None else picture.transpose(_TURNS[shot.angle])
