"""Faded images: contrast, brightness, gamma and noise taken from or added to an image, as a seed says."""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

KINDS = {"pale": (196, 224), "dark": (18, 44), "grey": (96, 150)}
"""Between which grey levels the middle of a faded image lies."""

CONTRAST = (0.02, 0.035)
"""Share of the contrast that is left. A reader that finds print at 0.06 no longer finds it at 0.04."""

GAMMA = (0.75, 1.35)
NOISE = (0.0, 0.0, 0.4, 0.7)
"""Standard deviations, grey levels: print is left with some five levels, so more would drown it."""


@dataclass(frozen=True, slots=True)
class Degradation:
    """How an image was faded: ``kind`` in a word, and what was done, in this order."""

    kind: str
    gamma: float
    contrast: float
    level: int
    noise: float
    seed: int

    def __str__(self) -> str:
        """As ``made_by`` records it; the name is that of the rows that shipped before."""
        return repr(self).replace(type(self).__name__, "Fading", 1)

    def faded(self, image: Image.Image) -> Image.Image:
        """The faded image, RGB."""
        pixels = np.asarray(image.convert("RGB"))
        levels = np.arange(256, dtype=np.float32) / 255
        faint = self.level + self.contrast * 255 * (levels**self.gamma - 0.5)  # of every level
        if not self.noise:
            return Image.fromarray(_levels(faint)[pixels])
        grain = np.random.default_rng(self.seed).normal(0, self.noise, pixels.shape[:2])
        return Image.fromarray(_levels(faint[pixels] + grain[..., None].astype(np.float32)))


def _levels(values: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    levels: NDArray[np.uint8] = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return levels


def sample_degradation(seed: int) -> Degradation:
    """The fading of a seed."""
    draw = random.Random(seed)
    kind = draw.choice(sorted(KINDS))
    return Degradation(
        kind=kind,
        gamma=round(draw.uniform(*GAMMA), 2),
        contrast=round(draw.uniform(*CONTRAST), 4),
        level=draw.randint(*KINDS[kind]),
        noise=draw.choice(NOISE),
        seed=seed,
    )
