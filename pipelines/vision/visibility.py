"""Measure what can be made out in an image as a model sees it, after its resize; and its visual tokens.

Records and decision: ``pipelines/records/visibility.py``. Qwen's rule: both sides become multiples of a token's side
(28 pixels for Qwen2.5-VL, 32 for Qwen3-VL), and the area is brought between the least and the most pixels with the
ratio of the sides kept as nearly as that allows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image

from darkroom.pipelines.records import ImageRef, Sample
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.visibility import Visibility
from darkroom.pipelines.storage.images import ImageStore

SURROUNDINGS = 0.1
"""What is around the target belongs to its contrast: a share of its longer side."""


def visibility_hint(sample: Sample, store: ImageStore) -> dict[str, Any]:
    """A sample's measurement as the hint keeps it: ``visibility``, as JSON; nothing without an image."""
    return {"visibility": visibility_of(sample, store).as_json()} if sample.images else {}


def visibility_of(sample: Sample, store: ImageStore) -> Visibility:
    """Visibility of the first target, or of the first image where none is known; without images nothing is known.

    Raises what opening the image raises.
    """
    if not sample.images:
        return Visibility()
    target = sample.truth.boxes[0] if sample.truth.boxes else None
    image = sample.images[target.image if target else 0]
    return visibility_in(image, target.box if target else None, store, angle=sample.truth.angle)


def visibility_as_given(
    sample: Sample, images: Sequence[ImageRef], hint: Mapping[str, Any], store: ImageStore
) -> Visibility:
    """The target in ``images``, which a recipe made of the sample's: at its size on them, the whole image's contrast.

    ``hint``: has the ``angle`` by which the recipe turned the image, if it did.
    """
    target = sample.truth.boxes[0] if sample.truth.boxes else None
    index = target.image if target and target.image < len(images) else 0
    image, angle = images[index], hint.get("angle", sample.truth.angle)
    angle = float(angle) if angle is not None else None
    if target is None or image == sample.images[index]:
        return visibility_in(image, target.box if target else None, store, angle=angle)
    whole = visibility_in(image, None, store, angle=angle)
    return replace(whole, side=shown_side(target.box, image.width, image.height))


def visibility_in(image: ImageRef, target: Box | None, store: ImageStore, *, angle: float | None = None) -> Visibility:
    """Visibility of ``target``, in pixels of ``image``, or of the whole image."""
    longest = max(image.width, image.height)
    if target is None:
        return Visibility(None, None, _stored_levels(store, image, None), angle, longest)
    share = round(target.area / (image.width * image.height), 6)
    return Visibility(
        shown_side(target, image.width, image.height), share, _stored_levels(store, image, target), angle, longest
    )


@dataclass(frozen=True, slots=True)
class VisionModel:
    """A model's view: ``side`` of the square that one token stands for, bounds on an image's pixels."""

    name: str
    side: int
    min_pixels: int = 3_136
    max_pixels: int = 2_000_000
    """Both as PyVision-RL §3.4 has them."""


QWEN2_5_VL = VisionModel("Qwen2.5-VL", 28)
QWEN3_VL = VisionModel("Qwen3-VL", 32)


def resized(width: int, height: int, vision: VisionModel) -> tuple[int, int]:
    """The size at which the model sees an image of ``width`` x ``height`` pixels, both at least 1.

    Qwen's processors refuse a side that is 200 times the other; here it is resized like any other.
    """
    side = vision.side
    wide, high = (round(length / side) * side for length in (width, height))
    if wide * high > vision.max_pixels:
        shrink = math.sqrt(width * height / vision.max_pixels)
        wide, high = (max(side, math.floor(length / shrink / side) * side) for length in (width, height))
    elif wide * high < vision.min_pixels:
        grow = math.sqrt(vision.min_pixels / (width * height))
        wide, high = (math.ceil(length * grow / side) * side for length in (width, height))
    return wide, high


def visual_tokens(width: int, height: int, vision: VisionModel) -> int:
    """The tokens that an image of ``width`` x ``height`` pixels costs."""
    wide, high = resized(width, height, vision)
    return wide * high // vision.side**2


def shown_side(target: Box, width: int, height: int, vision: VisionModel = QWEN2_5_VL) -> float:
    """The shorter side of ``target`` in pixels of the model, which resizes the image of ``width`` x ``height``."""
    wide, high = resized(width, height, vision)
    return round(min(target.width * wide / width, target.height * high / height), 1)


def levels_shown(part: Image.Image, scale: float) -> float:
    """Between which grey levels ``part`` lies after a resize by ``scale``, without the darkest and lightest 0.5 %."""
    size = (max(1, round(part.width * scale)), max(1, round(part.height * scale)))
    grey = part.convert("L")
    levels = np.asarray(grey.resize(size, Image.Resampling.BOX) if scale < 1 else grey)
    low, high = np.percentile(levels, (0.5, 99.5))
    return round(float(high - low), 1)


@lru_cache(maxsize=4096)
def _stored_levels(store: ImageStore, image: ImageRef, target: Box | None) -> float:
    pixels = store.open(image)
    scale = resized(image.width, image.height, QWEN2_5_VL)[0] / image.width
    if target is None:
        return levels_shown(pixels, scale)
    margin = max(2, round(SURROUNDINGS * max(target.width, target.height)))
    return levels_shown(pixels.crop(target.grown(margin).clipped(image.width, image.height)), scale)
