"""Turns a decoded picture as the file says: phones store what they film on its side, with a note."""

from array import array
from typing import Any, NamedTuple, cast

import cv2
import numpy as np
from av.sidedata.sidedata import Type
from av.video.frame import VideoFrame


class Turn(NamedTuple):
    """How the stored picture becomes the shown one: transposed first, then mirrored."""

    transposed: bool
    mirrored: bool
    upside_down: bool

    def size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Of the shown picture, from that of the stored one, or back."""
        return size[::-1] if self.transposed else size

    def apply(self, pixels: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
        if self.transposed:
            pixels = cv2.transpose(pixels)
        if self.mirrored or self.upside_down:
            pixels = cv2.flip(pixels, -1 if self.mirrored and self.upside_down else int(self.mirrored))
        return np.require(pixels, requirements=["C", "W"])


def turn_of(image: VideoFrame) -> Turn:
    """From the display matrix, rows (a, b, u), (c, d, v), (x, y, w): x' = ax + cy, y' = bx + dy.

    Angles other than quarter turns are ignored, as are the matrix's place and scale.
    """
    data = cast(dict[Type, bytes], image.side_data).get(Type.DISPLAYMATRIX)
    a, b, _, c, d = array("i", bytes(data))[:5] if data else (1, 0, 0, 0, 1)
    if a == d == 0 and b and c:
        return Turn(True, c < 0, b < 0)
    if b == c == 0 and a and d:
        return Turn(False, a < 0, d < 0)
    return Turn(False, False, False)
