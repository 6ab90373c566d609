"""Legibility of a part of an image: contrast, and how close an OCR reader comes to the known text.

The reader is PP-OCR by RapidOCR on the CPU (extra ``ocr``), whose wheel holds its models; no download. Without it
checks fall back on contrast. Degradations fade an image as a seed says: contrast, brightness, gamma and noise.
"""

import random
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from threading import Lock
from typing import Any, NamedTuple

import cv2
import numpy as np
from PIL import Image

from darkroom.pipelines.records.answers import edit_similarity
from darkroom.pipelines.vision.registration import correlation

_MAX_SIDE, _MIN_HEIGHT = 960, 64


class TextLine(NamedTuple):
    """A line as it was read; ``confidence`` 0..1."""

    text: str
    confidence: float


class OcrReader:
    """Reads images, one at a time."""

    def __init__(self) -> None:
        from rapidocr import RapidOCR

        self._engine: Any = RapidOCR(
            params={
                "Global.log_level": "critical",
                "Det.limit_type": "max",
                "Det.limit_side_len": _MAX_SIDE,
                "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )
        self._lock = Lock()  # the engine keeps the options of the call in progress; checks run in threads

    def read(self, image: Image.Image, *, is_line: bool = False) -> list[TextLine]:
        """The lines in an image from the top; a flat one is enlarged. ``is_line``: one line, none is searched for."""
        if (picture := image.convert("RGB")).height < _MIN_HEIGHT:
            scale = _MIN_HEIGHT / picture.height
            picture = picture.resize((round(picture.width * scale), _MIN_HEIGHT), Image.Resampling.BICUBIC)
        pixels = cv2.cvtColor(np.asarray(picture), cv2.COLOR_RGB2BGR)
        with self._lock:
            lines_read = self._engine(pixels, use_det=not is_line, use_cls=False, use_rec=True)
        scored = zip(lines_read.txts or (), lines_read.scores or (), strict=True)
        return [TextLine(str(text), float(score)) for text, score in scored]


def ocr_version() -> str:
    """Version of the reader, on which its verdicts depend; empty without one."""
    return f"rapidocr {version('rapidocr')}" if _is_installed() else ""


def ocr_reader() -> OcrReader | None:
    """The one reader of this process; None without the extra ``ocr``."""
    with _making:  # threads that ask at once would each make one
        return _reader()


_making = Lock()
_reader = cache(lambda: OcrReader() if _is_installed() else None)


def _is_installed() -> bool:
    return bool(find_spec("rapidocr") and find_spec("onnxruntime"))


_BREAK = re.compile(r"\s+|(?<=[^\W\d]:)")
"""Between words; readers lose the space of "room: 116", while 10:05 is one word."""

FAINT = 0.06
"""RMS contrast below which an image counts as faint. Photographs and print: 0.1 to 0.4."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """``rms``: deviation of the grey levels; ``edges``: mean gradient; both 0..1."""

    rms: float
    edges: float


def contrast(image: Image.Image) -> Contrast:
    levels = np.asarray(image.convert("L"), np.float32) / 255
    steps = [float(np.abs(np.diff(levels, axis=axis)).mean()) if levels.shape[axis] > 1 else 0.0 for axis in (0, 1)]
    return Contrast(float(levels.std()), sum(steps))


def likeness(image: Image.Image, original: Image.Image) -> float:
    """Correlation of the grey levels of two images of one size: what no contrast changes."""
    same = image.convert("L").resize(original.size, Image.Resampling.BOX)
    return correlation(np.asarray(same), np.asarray(original.convert("L")))


def plain(text: str) -> str:
    """Letters and digits alone, compatibility-normalised, without case: readers invent spaces and lose dots."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def anls(read: Sequence[TextLine], expected: str) -> tuple[float, str]:
    """Normalised Levenshtein similarity (ST-VQA, 0 below one half) of the closest run of words, and those words."""
    words = [word for line in read for word in _BREAK.split(line.text) if word]
    sizes = range(1, min(len(words), len(expected.split()) + 1) + 1)
    phrases = (" ".join(words[start : start + size]) for size in sizes for start in range(len(words) - size + 1))
    scored = ((edit_similarity(plain(phrase), plain(expected)), phrase) for phrase in phrases)
    best, phrase = max([(0.0, ""), *scored], key=lambda pair: pair[0])
    return (best if best >= 0.5 else 0.0), phrase


KINDS = {"pale": (196, 224), "dark": (18, 44), "grey": (96, 150)}
"""Between which grey levels the middle of a faded image lies."""

CONTRAST = (0.02, 0.035)
"""Share of the contrast that is left. A reader that finds print at 0.06 no longer finds it at 0.04."""

GAMMA = (0.75, 1.35)
NOISE = (0.0, 0.0, 0.4, 0.7)
"""Standard deviations, grey levels: print is left with some five levels, so more would drown it."""


@dataclass(frozen=True, slots=True)
class Degradation:
    """Degradation of an image: ``kind`` in a word, and what was done, in this order."""

    kind: str
    gamma: float
    contrast: float
    level: int
    noise: float
    seed: int

    def __str__(self) -> str:
        """Text that ``made_by`` records; the name is that of the rows that shipped before."""
        return repr(self).replace(type(self).__name__, "Fading", 1)

    def faded(self, image: Image.Image) -> Image.Image:
        pixels = np.asarray(image.convert("RGB"))
        levels = np.arange(256, dtype=np.float32) / 255
        faint = self.level + self.contrast * 255 * (levels**self.gamma - 0.5)  # of every level
        levels = faint[pixels]
        if self.noise:
            grain = np.random.default_rng(self.seed).normal(0, self.noise, pixels.shape[:2])
            levels = levels + grain[..., None].astype(np.float32)
        return Image.fromarray(np.clip(np.rint(levels), 0, 255).astype(np.uint8))


def sample_degradation(seed: int) -> Degradation:
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
