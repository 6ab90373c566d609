"""How well a part of a picture can be read: by contrast, and by how close a reader comes to the known text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from pipelines.reader import Line
from pipelines.registration import correlation

_BREAK = re.compile(r"\s+|(?<=[^\W\d]:)")
"""Between words; readers lose the space of "room: 116", while 10:05 is one word."""

FAINT = 0.06
"""RMS contrast below which a picture counts as faint. Photographs and print: 0.1 to 0.4."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """``rms``: deviation of the grey levels; ``michelson``: of the 2nd and 98th percentile; ``edges``: mean gradient;
    all 0..1."""

    rms: float
    michelson: float
    edges: float


def contrast(image: Image.Image) -> Contrast:
    """The contrast of a picture."""
    levels = np.asarray(image.convert("L"), np.float32) / 255
    low, high = (float(level) for level in np.percentile(levels, (2, 98)))
    steps = [float(np.abs(np.diff(levels, axis=axis)).mean()) if levels.shape[axis] > 1 else 0.0 for axis in (0, 1)]
    return Contrast(float(levels.std()), (high - low) / max(1e-6, high + low), sum(steps))


def likeness(image: Image.Image, original: Image.Image) -> float:
    """Correlation of the grey levels of two pictures of one size: what no contrast changes."""
    same = image.convert("L").resize(original.size, Image.Resampling.BOX)
    return correlation(np.asarray(same), np.asarray(original.convert("L")))


def plain(text: str) -> str:
    """Letters and digits alone, compatibility-normalised, without case: readers invent spaces and lose dots."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def anls(read: Sequence[Line], known: str) -> tuple[float, str]:
    """How close some run of words that was read comes to ``known``, 0..1, and those words.

    Average normalised Levenshtein similarity (ST-VQA): below one half it is 0.
    """
    words = [word for line in read for word in _BREAK.split(line.text) if word]
    n_words = len(known.split())
    best = (0.0, "")
    for size in range(1, min(len(words), n_words + 1) + 1):
        for start in range(len(words) - size + 1):
            said = " ".join(words[start : start + size])
            best = max(best, (_similarity(plain(said), plain(known)), said), key=lambda pair: pair[0])
    return best if best[0] >= 0.5 else (0.0, best[1])


def _similarity(one: str, other: str) -> float:
    if not one or not other:
        return 0.0
    row = list(range(len(other) + 1))
    for n, letter in enumerate(one, 1):
        previous, row[0] = row[0], n
        for m, against in enumerate(other, 1):
            previous, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, previous + (letter != against))
    return 1 - row[-1] / max(len(one), len(other))
