"""Tell whether a turn of an image can be seen: textures, noise, plain and rotationally symmetric images don't tell.

Three measures of the grey levels tell them apart. Photographs vary coarsely (sky above, ground below), which textures
don't; print, walls and charts run along two directions; and what looks the same after a quarter or a half turn has no
upper side, whatever else it has.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from darkroom.pipelines.vision.registration import correlation, scaled_gray

Levels = NDArray[np.float32]

MIN_LAYOUT = 0.05
"""Share of the variance in an 8 x 8 copy. Gravel, grass, noise: up to 0.03; photographs 0.17 to 0.78."""

MIN_GRID = 0.25
"""How far edges run along two perpendicular directions. Noise: up to 0.2; print 0.3; charts 0.4 to 0.9."""

MAX_SYMMETRY = 0.85
"""Correlation with the image's own quarter and half turns. Photographs: up to 0.6."""


@dataclass(frozen=True, slots=True)
class Orientation:
    """Evidence of an upper side, each 0..1 (``symmetry``: against it, -1..1)."""

    layout: float
    grid: float
    symmetry: float

    @property
    def visible(self) -> bool:
        """True if a turn of the image can be seen."""
        return (self.layout >= MIN_LAYOUT or self.grid >= MIN_GRID) and self.symmetry <= MAX_SYMMETRY

    @property
    def words(self) -> str:
        """The measures beside their bars, for a rejected row."""
        return (
            f"layout {self.layout:g}, grid {self.grid:g} (needed: {MIN_LAYOUT:g} or {MIN_GRID:g}), "
            f"symmetry {self.symmetry:g} (at most {MAX_SYMMETRY:g})"
        )


def orientation(image: Image.Image) -> Orientation:
    levels = scaled_gray(image, min(1.0, 512 / max(image.size)), min_side=8).astype(np.float32)
    variance = float(levels.var())
    if variance < 1:
        return Orientation(0.0, 0.0, 0.0)
    layout = float(_copy(levels, 8).var()) / variance
    return Orientation(round(layout, 4), round(_grid(levels), 4), round(_symmetry(levels), 4))


def _copy(levels: Levels, side: int) -> Levels:
    return np.asarray(cv2.resize(levels, (side, side), interpolation=cv2.INTER_AREA), np.float32)


def _grid(levels: Levels) -> float:
    """Length of the mean of the edges' directions, four-fold, weighted by the edges' energy."""
    edges = cv2.Sobel(levels, cv2.CV_32F, 1, 0) + 1j * cv2.Sobel(levels, cv2.CV_32F, 0, 1)
    energy = np.abs(edges) ** 2
    total = float(energy.sum())
    return float(np.abs((edges**4 / np.maximum(energy, 1e-6)).sum())) / total if total else 0.0


def _symmetry(levels: Levels) -> float:
    """The best correlation of the disc in the middle with one of its own turns."""
    side = 32
    copy = _copy(levels, side)
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    disc = x**2 + y**2 <= (side / 2) ** 2
    return max(correlation(copy[disc], np.rot90(copy, turns)[disc]) for turns in (1, 2, 3))
