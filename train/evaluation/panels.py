"""Pictures inside a figure: what ``plt.imshow`` drew, without the white around it, its frame, ticks and titles.

A crop that is shown as a figure (PyVision's way) is no part of the original pixel by pixel; its panel is. Found are
panels with a frame, whatever they show, and panels without one as far as they are not of the figure's own colour.
"""

from __future__ import annotations

import cv2
import numpy as np
from PIL import Image

from pipelines.geometry import Box

_LEAST_SHARE = 0.02
_MOST_PANELS = 12
_TICK = 9
"""Pixels: ticks, letters and lines that are thinner than this are no panel."""
_FRAME = 2
_DIFFERS = 12


def panels(picture: Image.Image) -> list[Image.Image]:
    """The panels of a figure, from left to right and top to bottom; none for a picture that is no figure."""
    pixels = np.asarray(picture.convert("RGB"), np.int16)
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    if np.abs(edge - edge[0]).max() > _DIFFERS:
        return []
    mask = (np.abs(pixels - edge[0]).max(axis=2) > _DIFFERS).astype(np.uint8)
    boxes = [box for box in _boxes(mask) if box.area >= _LEAST_SHARE * mask.size]
    return [picture.crop(box.grown(-_FRAME)) for box in sorted(boxes, key=lambda box: (box.y1, box.x1))[:_MOST_PANELS]]


def _boxes(mask: np.typing.NDArray[np.uint8]) -> list[Box]:
    """Boxes of what is solid in ``mask`` once frames are filled and thin things are gone."""
    outlines, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    filled = cv2.drawContours(np.zeros_like(mask), list(outlines), -1, 1, cv2.FILLED)
    solid = cv2.morphologyEx(filled, cv2.MORPH_OPEN, np.ones((_TICK, _TICK), np.uint8))
    parts, _ = cv2.findContours(solid, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    corners = [cv2.boundingRect(part) for part in parts]
    return [Box(x, y, x + wide, y + high) for x, y, wide, high in corners]
