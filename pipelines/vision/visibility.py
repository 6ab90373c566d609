"""Measures what can be made out in an image as a model sees it, after its resize.

The records and the decision are in ``pipelines/records/visibility.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image

from darkroom.pipelines.records import ImageRef, Sample
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.visibility import Visibility
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.vision.visual_tokens import QWEN2_5_VL, VisionModel, resized

SURROUNDINGS = 0.1
"""What is around the target belongs to its contrast: a share of its longer side."""


def visibility_hint(sample: Sample, store: ImageStore) -> dict[str, Any]:
    """A sample's measurement as the hint keeps it: ``visibility``, as JSON; nothing without an image."""
    return {"visibility": visibility_of(sample, store).as_json()} if sample.images else {}


def visibility_of(sample: Sample, store: ImageStore) -> Visibility:
    """Of the first target, or of the first image where none is known; of no image: nothing is known.

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
    """Of ``target``, in pixels of ``image``, or of the whole image."""
    longest = max(image.width, image.height)
    if target is None:
        return Visibility(None, None, _stored_levels(store, image, None), angle, longest)
    share = round(target.area / (image.width * image.height), 6)
    return Visibility(
        shown_side(target, image.width, image.height), share, _stored_levels(store, image, target), angle, longest
    )


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
