"""Closeups: the region that shows a sample's target, and how the oracle speaks and programs about it."""

from __future__ import annotations

import random

from pipelines.answers import split_choice
from pipelines.geometry import Box
from pipelines.records import Sample
from pipelines.rejects import Reason, RowFault

MAX_TARGET_SHARE = 0.05
"""Thyme's bound on small targets in its high-resolution data (§4.1)."""

MARGIN = 0.15
"""How far a closeup reaches beyond the target, as a share of the target's longer side: context for the reader."""

READABLE_SIDE = 480
"""A closeup is enlarged until its longer side has about this many pixels, eight-fold at most."""


def closeup(sample: Sample) -> Box:
    """The region to crop: the target with a margin.

    Raises ``RowFault``: not_applicable without a target's box, unsuitable where the target fills more than
    ``MAX_TARGET_SHARE`` of the image, because cropping it would be lazy.
    """
    if not sample.images or not sample.truth.boxes:
        raise RowFault(Reason.NOT_APPLICABLE, "the sample has no image with a target's box")
    image, target = sample.images[0], sample.truth.boxes[0].box
    share = target.area / (image.width * image.height)
    if share > MAX_TARGET_SHARE:
        raise RowFault(
            Reason.UNSUITABLE, f"the target fills {share:.1%} of the image, more than {MAX_TARGET_SHARE:.0%}"
        )
    margin = max(8, round(MARGIN * max(target.width, target.height)))
    return target.grown(margin).clipped(image.width, image.height)


def as_text(region: Box) -> str:
    """``180, 100, 280, 170``, as prompts have it."""
    return ", ".join(map(str, region))


def from_text(region: str) -> Box:
    """The region that ``as_text`` wrote."""
    return Box(*map(int, region.split(", ")))


def label_of(sample: Sample) -> str:
    """What the target is called, on one line; not every source has a name for it."""
    label = sample.truth.boxes[0].label if sample.truth.boxes else ""
    return " ".join(label.split()) or "detail in question"


def seen_in(sample: Sample) -> str:
    """What one reads off the closeup: the answer, or the text behind its letter; intake has made it a letter."""
    return dict(map(split_choice, sample.choices))[sample.answer] if sample.choices else sample.answer


def closing_of(sample: Sample) -> str:
    """The sentence that names the choice; empty without choices."""
    return f" That is choice {sample.answer}." if sample.choices else ""


def place_of(region: Box, sample: Sample) -> str:
    """Where in the image a region is, in words: ``upper left``, ``centre``, ``right side``."""
    image = sample.images[0]
    x, y = (region.x1 + region.x2) / 2 / image.width, (region.y1 + region.y2) / 2 / image.height
    column = "left" if x < 1 / 3 else "right" if x > 2 / 3 else "middle"
    row = "upper" if y < 1 / 3 else "lower" if y > 2 / 3 else "middle"
    return "centre" if column == row == "middle" else f"{row} {column}" if row != "middle" else f"{column} side"


def crop_program(region: Box, *, label: str, draw: random.Random) -> str:
    """A program that crops and enlarges ``region``, shows it and prints where it lies."""
    return draw.choice((_PIL_CODE, _CV2_CODE)).format(
        label=label,
        box=tuple(region),
        scale=enlargement(region),
        x1=region.x1,
        y1=region.y1,
        x2=region.x2,
        y2=region.y2,
    )


def enlargement(region: Box) -> int:
    """How many times a closeup is enlarged."""
    return min(8, max(1, round(READABLE_SIDE / max(region.width, region.height))))


_PIL_CODE = """\
from PIL import Image
import random

image = Image.open(image_path).convert("RGB")
# the part with the {label}
crop_box = {box}
crop = image.crop(crop_box)
# enlarge it so that small details become readable
crop = crop.resize((crop.width * {scale}, crop.height * {scale}), Image.LANCZOS)
processed_path = f"/mnt/data/temp_processed_images/crop_{{random.randint(1000, 9999)}}.png"
crop.save(processed_path)
print(processed_path)"""
_CV2_CODE = """\
import cv2
import random

image = cv2.imread(image_path)
# cut out the {label} and its surroundings
x1, y1, x2, y2 = {x1}, {y1}, {x2}, {y2}
crop = image[y1:y2, x1:x2]
crop = cv2.resize(crop, None, fx={scale}, fy={scale}, interpolation=cv2.INTER_CUBIC)
processed_path = f"/mnt/data/temp_processed_images/crop_{{random.randint(1000, 9999)}}.png"
cv2.imwrite(processed_path, crop)
print(processed_path)"""
