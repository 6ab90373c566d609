"""Photographs with a question each: as they are (an easy one, or for a glance at the whole), and as snapshots.

Where the target of an easy question was measured it is in ``truth.boxes``; most boxes are large on purpose, so that a
crop of them would be a lazy step. The coins have a count instead. Snapshots are turned on their side, underexposed,
or both: ``truth.angle`` is how far the image has been turned, in degrees counter-clockwise; ``truth.contrast`` the
share of its tonal range that is left. No file says so: there is no EXIF orientation to put it right.
"""

from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any

from PIL import Image

from darkroom.pipelines.demo import data_beside
from darkroom.pipelines.demo.images import material
from darkroom.pipelines.records import Truth, TruthBox
from darkroom.pipelines.sources import SourceRow

QUESTIONS = data_beside(__file__)
DARKEST = 9
"""The grey level that black has in an underexposed image."""
_TURNS = {90: Image.Transpose.ROTATE_90, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_270}


def photographs(kind: str, seed: int) -> list[material.LazyRow]:
    """The easy questions (``photo``), those at a glance (``overview``) or the snapshots by name, not made yet."""
    questions = QUESTIONS[kind]
    own = (f"{number:02d}" if kind == "snapshot" else each["photograph"] for number, each in enumerate(questions))
    rows = ((f"{kind}/{name}", number) for number, name in enumerate(own))
    return [material.LazyRow(name, partial(_row, name, number, questions[number], seed)) for name, number in rows]


def _row(name: str, number: int, question: Mapping[str, Any], seed: int) -> SourceRow:
    answer: str | material.Choices = question["answer"]
    if "wrong" in question:
        answer = material.lettered(
            question["answer"], question["wrong"], place=number + seed, rng=Random(f"{seed}/{name}")
        )
    boxes = (TruthBox(question["box"]["label"], *question["box"]["sides"]),) if "box" in question else ()
    truth = Truth(boxes, count=question.get("count"), angle=question.get("angle"), contrast=question.get("contrast"))
    image, license = _image(question["photograph"], truth), material.PHOTOGRAPHS[question["photograph"]].license
    return material.image_row(
        name, image, question["question"], answer, truth, category=question["category"], license=license
    )


def _image(photograph: str, truth: Truth) -> bytes:
    """The packaged file, or a snapshot of it, as ``truth`` says."""
    if truth.angle is None and truth.contrast is None:
        return material.photograph_bytes(photograph)
    image = material.photograph_image(photograph)
    if truth.contrast is not None:
        levels = [DARKEST + round(level * truth.contrast) for level in range(256)]
        image = image.point(levels * len(image.getbands()))
    return material.jpeg_bytes(image if truth.angle is None else image.transpose(_TURNS[int(truth.angle)]), quality=95)
