"""The reader of print: PP-OCR by RapidOCR on the CPU (extra ``ocr``), whose wheel holds its models; no download.

It finds lines and reads them. Without the extra there is no reader, and checks fall back on contrast.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from threading import Lock
from typing import Any, NamedTuple

import cv2
import numpy as np
from PIL import Image

_MAX_SIDE, _MIN_HEIGHT = 960, 64


class Line(NamedTuple):
    """A line as it was read; ``confidence`` 0..1."""

    text: str
    confidence: float


class Reader:
    """Reads pictures, one at a time."""

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

    def read(self, image: Image.Image) -> list[Line]:
        """The lines in a picture, from top to bottom; a flat one is enlarged first."""
        picture = image.convert("RGB")
        if picture.height < _MIN_HEIGHT:
            scale = _MIN_HEIGHT / picture.height
            picture = picture.resize((round(picture.width * scale), _MIN_HEIGHT), Image.Resampling.BICUBIC)
        pixels = cv2.cvtColor(np.asarray(picture), cv2.COLOR_RGB2BGR)
        with self._lock:
            found = self._engine(pixels, use_det=True, use_cls=False, use_rec=True)
        return [Line(str(text), float(score)) for text, score in zip(found.txts or (), found.scores or (), strict=True)]


def reader_version() -> str:
    """What the verdicts by reading depend on: the reader's version, empty without one."""
    return f"rapidocr {version('rapidocr')}" if _is_installed() else ""


@cache
def reader() -> Reader | None:
    """The one reader of this process; None without the extra ``ocr``."""
    return Reader() if _is_installed() else None


def _is_installed() -> bool:
    return bool(find_spec("rapidocr") and find_spec("onnxruntime"))
