"""Crop: look closer at the part of the image that the question is about (Thyme appendix B, Coding Data 1; table 10).

The policy is told the target's box, writes why a closer look is needed and a program that crops and enlarges, sees
the crop, and answers. The box may show in the program only. Samples without a box are not applicable; a target that
fills more than ``MAX_TARGET_SHARE`` of the image is unsuitable, because cropping it would be lazy.
"""

from __future__ import annotations

import random
from pathlib import Path

from pipelines.answers import split_choice
from pipelines.checks import (
    answer_matches,
    crop_contains_target,
    crop_is_tight,
    executes,
    hint_stays_hidden,
    shows_an_image,
)
from pipelines.geometry import Box
from pipelines.images import ImageStore
from pipelines.policies.base import Turn
from pipelines.prompts import bundled_prompt
from pipelines.protocols import Thyme
from pipelines.recipes.base import Recipe
from pipelines.records import Sample
from pipelines.rejects import Reason, RowFault
from pipelines.tasks import Prepared

MAX_TARGET_SHARE = 0.05
"""Thyme's bound on small targets in its high-resolution data (§4.1)."""

MARGIN = 0.15
"""How far the crop reaches beyond the target, as a share of the target's longer side: context for the reader."""

READABLE_SIDE = 480
"""A crop is enlarged until its longer side has about this many pixels, eight-fold at most."""


def prepare(sample: Sample, store: ImageStore) -> Prepared:
    """The image as it is; the region to crop as the hint."""
    if not sample.images or not sample.truth.boxes:
        raise RowFault(Reason.NOT_APPLICABLE, "the sample has no image with a target's box")
    image, target = sample.images[0], sample.truth.boxes[0].box
    share = target.area / (image.width * image.height)
    if share > MAX_TARGET_SHARE:
        raise RowFault(
            Reason.UNSUITABLE, f"the target fills {share:.1%} of the image, more than {MAX_TARGET_SHARE:.0%}"
        )
    margin = max(8, round(MARGIN * max(target.width, target.height)))
    region = target.grown(margin).clipped(image.width, image.height)
    return Prepared(sample.images, {"region": ", ".join(map(str, region))})


def script(turn: Turn) -> str:
    """The oracle: the crop, then what it shows."""
    return _look(turn) if not turn.rounds else _answer(turn)


def _look(turn: Turn) -> str:
    sample = turn.task.sample
    draw = random.Random(turn.task.seed)
    label, region = _label(sample), Box(*map(int, turn.task.hint["region"].split(", ")))
    place = _place(region, sample.images[0].width, sample.images[0].height)
    why = draw.choice(_WHY).format(label=label, place=place)
    then = draw.choice(_THEN).format(label=label, place=place)
    code = draw.choice((_PIL_CODE, _CV2_CODE)).format(
        label=label,
        box=tuple(region),
        scale=_enlargement(region),
        x1=region.x1,
        y1=region.y1,
        x2=region.x2,
        y2=region.y2,
    )
    return Thyme().write_round(f"{why} {then}", code, first=True)


def _answer(turn: Turn) -> str:
    sample = turn.task.sample
    draw = random.Random(turn.seed)
    seen = _choice_text(sample) if sample.choices else sample.answer
    shows = draw.choice(_SHOWS).format(label=_label(sample), seen=seen)
    closing = f" That is choice {sample.answer}." if sample.choices else ""
    return Thyme().write_answer(f"{shows}{closing}", sample.answer, first=False)


def _place(region: Box, width: int, height: int) -> str:
    x, y = (region.x1 + region.x2) / 2 / width, (region.y1 + region.y2) / 2 / height
    column = "left" if x < 1 / 3 else "right" if x > 2 / 3 else "middle"
    row = "upper" if y < 1 / 3 else "lower" if y > 2 / 3 else "middle"
    return "centre" if column == row == "middle" else f"{row} {column}" if row != "middle" else f"{column} side"


def _enlargement(region: Box) -> int:
    return min(8, max(1, round(READABLE_SIDE / max(region.width, region.height))))


def _choice_text(sample: Sample) -> str:
    """The text behind the answer's letter; intake has made the answer a letter."""
    return dict(map(split_choice, sample.choices))[sample.answer]


def _label(sample: Sample) -> str:
    """What the target is called, on one line; not every source has a name for it."""
    return " ".join(sample.truth.boxes[0].label.split()) or "detail in question"


_WHY = (
    "The question is about the {label}, which takes up only a sliver of this large picture, so I cannot make it out "
    "reliably at this size.",
    "At this resolution the {label} is a small detail among many others, too small to judge with confidence.",
    "I can see where the {label} must be, but in the full view it is far too small to read.",
    "There is a lot going on in this picture, and the {label} that matters here is tiny.",
)
_THEN = (
    "It sits towards the {place} of the picture. I will crop that part and enlarge it.",
    "It should be near the {place}, so I will cut out that area and look at it enlarged.",
    "Zooming in on the {place}, where the {label} is, should settle it.",
)
_SHOWS = (
    "The enlarged view shows the {label} clearly: {seen}.",
    "Now the {label} can be seen properly, and it is {seen}.",
    "With the {label} enlarged there is no doubt left: {seen}.",
)
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

recipe = Recipe(
    family="crop",
    description="Cropping: the target is small, the policy crops it, looks and answers (Thyme App. B, table 10).",
    file=Path(__file__),
    prompt=bundled_prompt("crop"),
    protocol=Thyme(),
    n_wanted=28_000,
    prepare=prepare,
    script=script,
    checks=(executes, shows_an_image, crop_contains_target, crop_is_tight, answer_matches, hint_stays_hidden),
)
