"""Pictures as they are sent: within the model's limits, encoded once, as data URLs.

A model answers in the frame of what it saw: ``Frame.size`` is that frame, ``pipelines.geometry.box_from_frame`` maps
back. A picture within the limits travels as its stored bytes. One that must be resized is sent as a JPEG if it was
stored as one, as a PNG otherwise.
"""

from __future__ import annotations

import asyncio
import base64
import io
import math
import os
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from weakref import WeakValueDictionary

from PIL import Image

from pipelines.images import ImageStore
from pipelines.records import ImageRef

MEDIA_TYPES = {"JPEG": "image/jpeg", "MPO": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
"""By format, for what intake stores (``pipelines/decoding.py``); an MPO is a JPEG with further pictures after it."""

CACHE_BYTES = 128 * 2**20
JPEG_QUALITY = 95
"""Little is lost, and no colour is averaged over neighbours (4:4:4): thin coloured text stays legible."""


@dataclass(frozen=True, slots=True)
class PixelLimits:
    """How large a picture may be sent. The rule is that of Qwen2-VL's ``smart_resize``, facts from transformers."""

    least: int | None = None
    most: int | None = None
    step: int = 1

    def fit(self, width: int, height: int) -> tuple[int, int]:
        """The size to send: sides near multiples of ``step``, the area within the limits, the shape kept."""
        step = self.step
        fitted = (max(step, round(width / step) * step), max(step, round(height / step) * step))
        area = fitted[0] * fitted[1]
        if self.most is not None and area > self.most:
            shrink = math.sqrt(width * height / self.most)
            return _floor(width / shrink, step), _floor(height / shrink, step)
        if self.least is not None and area < self.least:
            grow = math.sqrt(self.least / (width * height))
            return _ceil(width * grow, step), _ceil(height * grow, step)
        return fitted


class Pictures:
    """The store's pictures as data URLs. The last ``max_bytes`` of them are kept: each turn shows the same again."""

    def __init__(self, store: ImageStore, limits: PixelLimits, *, max_bytes: int = CACHE_BYTES) -> None:
        self._store, self._limits, self._max_bytes = store, limits, max_bytes
        self._urls: OrderedDict[str, str] = OrderedDict()
        self._n_bytes = 0
        self._encoding: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._threads = ThreadPoolExecutor(min(4, os.cpu_count() or 1), "pictures")
        self.n_encoded = 0

    def size(self, image: ImageRef) -> tuple[int, int]:
        """Width and height of what is sent for ``image``."""
        return self._limits.fit(image.width, image.height)

    async def url(self, image: ImageRef) -> str:
        """``data:image/png;base64,…``. Raises ``ImageMissing``."""
        async with self._encoding.setdefault(image.sha256, asyncio.Lock()):
            if image.sha256 not in self._urls:
                made = await asyncio.get_running_loop().run_in_executor(self._threads, self._encode, image)
                self._keep(image.sha256, made)
                return made
            self._urls.move_to_end(image.sha256)
            return self._urls[image.sha256]

    def close(self) -> None:
        """Forgets all and ends the threads."""
        self._threads.shutdown()
        self._urls.clear()

    def _keep(self, sha256: str, url: str) -> None:
        self.n_encoded += 1
        self._urls[sha256] = url
        self._n_bytes += len(url)
        while self._n_bytes > self._max_bytes:
            self._n_bytes -= len(self._urls.popitem(last=False)[1])

    def _encode(self, image: ImageRef) -> str:
        size = self.size(image)
        if size == (image.width, image.height):
            format, data = image.format, self._store.read(image)
        else:
            format = "JPEG" if image.format in ("JPEG", "MPO") else "PNG"
            data = _encoded(self._store.open(image).resize(size, Image.Resampling.BICUBIC), format)
        media_type = MEDIA_TYPES.get(format, f"image/{format.lower()}")
        return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


def _encoded(image: Image.Image, format: str) -> bytes:
    buffer = io.BytesIO()
    if format == "JPEG":
        image.save(buffer, format, quality=JPEG_QUALITY, subsampling=0)
    else:
        image.save(buffer, format, compress_level=1)
    return buffer.getvalue()


def _floor(side: float, step: int) -> int:
    return max(step, math.floor(side / step) * step)


def _ceil(side: float, step: int) -> int:
    return math.ceil(side / step) * step
