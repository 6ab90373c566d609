"""Photographs as careless hands leave them: turned on their side, underexposed, or both, with a question each.

``truth.angle`` is how far the image has been turned, in degrees counter-clockwise; ``truth.contrast`` the share of
its tonal range that is left. No file says so: there is no EXIF orientation to put it right.
"""

from __future__ import annotations

from PIL import Image

from pipelines.demo.images.material import LazyRow, jpeg_bytes, photograph_image
from pipelines.demo.images.photographs import PhotographQuestion, photograph_rows
from pipelines.records import Truth

DARKEST = 9
"""The grey level that black has in an underexposed image."""
_TURNS = {90: Image.Transpose.ROTATE_90, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_270}


def _snapshot(
    photograph: str,
    category: str,
    question: str,
    answer: str,
    wrong: tuple[str, ...],
    angle: int | None = None,
    contrast: float | None = None,
) -> PhotographQuestion:
    return PhotographQuestion(photograph, category, question, answer, wrong, Truth(angle=angle, contrast=contrast))


SNAPSHOTS = (
    _snapshot("page", "OCR", "What is the heading of this printed page?", "Region-based segmentation", (), 180),
    _snapshot("page", "OCR", "Which word follows 'Let' in the first line below the heading?", "us", (), 90),
    _snapshot(
        *("page", "OCR", "At which parts of the histogram are the markers found, does this page say?"),
        "the two extreme parts",
        ("the middle part", "the first half", "all parts"),
        270,
    ),
    _snapshot(
        *("astronaut", "location", "With the astronaut upright, on which side of her is the flag?", "left"),
        ("right", "above", "below"),
        90,
    ),
    _snapshot(
        *("camera", "location", "Seen upright, on which side of the man does his tripod stand?", "right"),
        ("left", "above", "below"),
        180,
    ),
    _snapshot(
        *("motorcycle", "location", "Which way would the motorcycle drive off if it stood on its wheels?", "right"),
        ("left", "up", "down"),
        270,
    ),
    _snapshot(
        *("pagoda", "location", "With the roof on top, on which side of the tower can one see the lake?", "right"),
        ("left", "above", "below"),
        180,
    ),
    _snapshot(
        *("page", "OCR", "This page has been printed faintly. Which word comes before 'segmentation'?"),
        "Region-based",
        (),
        contrast=0.13,
    ),
    _snapshot(
        *("coffee", "object", "What is the dark scene about: what stands in the saucer?", "a cup"),
        ("a candle", "a flower pot", "a bell"),
        contrast=0.12,
    ),
    _snapshot(
        *("motorcycle", "object", "Which vehicle can be made out in the gloom of this room?", "motorcycle"),
        ("bicycle", "tractor", "sledge"),
        contrast=0.1,
    ),
    _snapshot(
        *("pagoda", "object", "What sort of building rises in this murky view?", "pagoda"),
        ("lighthouse", "factory", "cathedral"),
        contrast=0.14,
    ),
    _snapshot(
        *("flower", "object", "What fills the middle of this very dark picture?", "a flower"),
        ("a clock", "a shell", "a hat"),
        contrast=0.11,
    ),
    _snapshot(
        *("page", "OCR", "Which function of np does the program line at the bottom call?", "zeros_like"),
        (),
        180,
        0.16,
    ),
    _snapshot(
        *("astronaut", "location", "In the upright portrait, on which side does the model of the rocket stand?"),
        "right",
        ("left", "above", "below"),
        270,
        0.14,
    ),
    _snapshot(
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
    return photograph_rows(names, SNAPSHOTS, seed, image=_taken)


def _taken(question: PhotographQuestion) -> bytes:
    image, truth = photograph_image(question.photograph), question.truth
    if truth.contrast is not None:
        levels = [DARKEST + round(level * truth.contrast) for level in range(256)]
        image = image.point(levels * len(image.getbands()))
    return jpeg_bytes(image if truth.angle is None else image.transpose(_TURNS[int(truth.angle)]), quality=95)
