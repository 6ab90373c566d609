"""Images of a rollout's observations, traced to regions of the question's images, measured on pixels. A crop inside a
figure (``plt.imshow``, as PyVision does) matches only without the white around it, frame, ticks and titles. Panels are
found with a frame, whatever their content, and without one as far as they differ from the figure's own colour."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image

from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.records import ImageRef, to_row
from darkroom.pipelines.records.geometry import Box, box_from_fractions
from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.verification.checks.crop import executed_code
from darkroom.pipelines.vision.crop_localization import best_of
from darkroom.pipelines.vision.image_transform import TURNED_DEGREES, ImageTransform, measure_transform, residual
from darkroom.train.evaluation.code_analysis import crop_boxes

_LEAST_SHARE = 0.02
_MOST_PANELS = 12
_TICK = 9
"""Pixels: ticks, letters and lines that are thinner than this are no panel."""
_FRAME = 2
_DIFFERS = 12


def panels(image: Image.Image) -> list[Image.Image]:
    """The panels of a figure, in reading order; none for other images."""
    pixels = np.asarray(image.convert("RGB"), np.int16)
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    if np.abs(edge - edge[0]).max() > _DIFFERS:
        return []
    mask = (np.abs(pixels - edge[0]).max(axis=2) > _DIFFERS).astype(np.uint8)
    boxes = [box for box in _boxes(mask) if box.area >= _LEAST_SHARE * mask.size]
    return [image.crop(box.grown(-_FRAME)) for box in sorted(boxes, key=lambda box: (box.y1, box.x1))[:_MOST_PANELS]]


def _boxes(mask: np.typing.NDArray[np.uint8]) -> list[Box]:
    """Boxes of solid areas in ``mask`` after filling frames and removing thin lines."""
    outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    filled = cv2.drawContours(np.zeros_like(mask), list(outlines), -1, 1, cv2.FILLED)
    solid = cv2.morphologyEx(filled, cv2.MORPH_OPEN, np.ones((_TICK, _TICK), np.uint8))
    parts, _ = cv2.findContours(solid, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    return [Box(x, y, x + wide, y + high) for x, y, wide, high in map(cv2.boundingRect, parts)]


_VERSION = 2
_RESAMPLED = 3.0
"""Mean absolute difference (0..255) of 64 x 64 thumbnails of a part and of its enlargement or JPEG."""
_TOOL = re.compile(r"crop_image_normalized\(bbox_2d=\[([^][]++)\], target_image=(\d+)\)")


@dataclass(frozen=True, slots=True)
class ObservedImage:
    """An image that round ``round`` returned, or a panel of it, and its transform from the question's image ``of``.
    ``change`` is None where it shows none of the question's images: a plot, for example."""

    round: int
    image: ImageRef
    of: int = 0
    change: ImageTransform | None = None

    def is_part(self, whole_share: float) -> bool:
        """True if it shows a chosen part: at most ``whole_share`` of the image's area."""
        return self.change is not None and self.change.share <= whole_share

    @property
    def is_untouched(self) -> bool:
        """True if it is an unchanged image of the question, at any size."""
        transform = self.change
        if transform is None or transform.mirrored or residual(transform.angle) > TURNED_DEGREES or transform.relights:
            return False
        return transform.share > 0.98


_Regions = list[tuple[int, ImageTransform]]
"""The number of a question's image, and how the part was made from it."""


class ImageTracer:
    """Tracer of images to their origin; each is measured once and recorded on the ledger."""

    def __init__(self, store: ImageStore, ledger: Ledger) -> None:
        self._store, self._ledger = store, ledger

    async def trace(self, images: tuple[ImageRef, ...], rollout: Rollout) -> tuple[ObservedImage, ...]:
        observed: list[ObservedImage] = []
        code = ""
        for number, turn in enumerate(rollout.rounds):
            code += f"{executed_code(turn)}\n"  # names persist across the rounds of a session
            for image in turn.observation.images:
                observed += await self.trace_image(images, code, image, number=number)
        return tuple(observed)

    async def trace_image(
        self, images: tuple[ImageRef, ...], code: str, output: ImageRef, *, number: int = 0
    ) -> tuple[ObservedImage, ...]:
        """Trace one image of round ``number``; ``code`` is that of all rounds so far. A figure gives each panel that is
        part of an image, or one without a ``change`` where no panel is."""
        digests = [image.sha256 for image in images]
        request = {"version": _VERSION, "shown": output.sha256, "images": digests, "code": code}

        async def perform() -> CachedCall:
            transforms = await asyncio.to_thread(self._regions, images, output, code)
            return CachedCall({"parts": [{"of": of, "change": to_row(transform)} for of, transform in transforms]})

        parts = (await self._ledger.get_or_run("region", request, perform)).result["parts"]
        changes = [(part["of"], {**part["change"], "box": Box(*part["change"]["box"])}) for part in parts]
        observed = tuple(ObservedImage(number, output, of, ImageTransform(**transform)) for of, transform in changes)
        return observed or (ObservedImage(number, output),)

    def _regions(self, images: tuple[ImageRef, ...], output: ImageRef, code: str) -> _Regions:
        """Regions of the question's images: by the box that the code spells, by panels, else as a whole."""
        pixels = self._store.open(output)
        return (
            self._spelled(images, pixels, code)
            or self._parts(images, panels(pixels), code)
            or self._parts(images, [pixels], code)
        )

    def _spelled(self, images: tuple[ImageRef, ...], pixels: Image.Image, code: str) -> _Regions:
        """The region where the whole output equals a box of the code, at any size. A plain border is then the image's
        own, as of a wall around a sign, and not that of a figure around its panel."""
        for number, image in enumerate(images):
            # sides of the same ratio, up to a pixel by which each may be rounded
            boxes = []
            for box in _spelled_boxes(code, image, number):
                excess = abs(box.width * pixels.height - box.height * pixels.width)
                if excess <= max(*pixels.size, box.width, box.height):
                    boxes.append(box)
            if not boxes:
                continue
            original = self._store.open(image)
            location = best_of(pixels, original, boxes)
            if location is not None and location.difference <= _RESAMPLED:
                transform = measure_transform(pixels, original, [location.box])
                return [] if transform is None else [(number, transform)]
        return []

    def _parts(self, images: tuple[ImageRef, ...], parts: Sequence[Image.Image], code: str) -> _Regions:
        regions = []
        for part in parts:
            for number, image in enumerate(images):
                boxes = _spelled_boxes(code, image, number)  # tried first, the latest before others
                if (transform := measure_transform(part, self._store.open(image), boxes)) is not None:
                    regions.append((number, transform))
                    break
        return regions


def _spelled_boxes(code: str, image: ImageRef, number: int) -> list[Box]:
    """Boxes that the code, or a call of the crop tool, spells of the question's image ``number``, the latest first."""
    boxes = crop_boxes(code, image.width, image.height)
    for sides in (call[1] for call in _TOOL.finditer(code) if int(call[2]) == number + 1):
        with suppress(ValueError):  # the tool refused it, too
            boxes.append(box_from_fractions([float(side) for side in sides.split(",")], image.width, image.height))
    return boxes[::-1]
