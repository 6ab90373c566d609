"""Images as data URLs, within the model's pixel limits, encoded once: as their stored bytes, or resized, as a JPEG if
they were stored as one, else as a PNG. A model answers in coordinates of the image as sent (``SentImage``);
``darkroom.pipelines.records.geometry.box_from_frame`` maps back."""

import asyncio
import os
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakValueDictionary

import pybase64
from PIL import Image

from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.records.geometry import PixelLimits
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.media_validation import encode

MEDIA_TYPES = {"JPEG": "image/jpeg", "MPO": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
"""Of the formats that intake stores (``media_validation.py``); an MPO is a JPEG with further images after it."""

CACHE_BYTES = 128 * 2**20
JPEG_QUALITY = 95
"""With 4:4:4 chroma, so that thin coloured text stays legible."""


class ImageEncoder:
    """The store's images as data URLs, the last ``max_bytes`` of them cached: each turn sends the same ones again."""

    def __init__(self, store: ImageStore, limits: PixelLimits, *, max_bytes: int = CACHE_BYTES) -> None:
        self._store, self._limits, self._max_bytes = store, limits, max_bytes
        self._urls: OrderedDict[str, bytes] = OrderedDict()
        self._n_bytes = 0
        self._encoding: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._threads = ThreadPoolExecutor(min(4, os.cpu_count() or 1), "images")

    def size(self, image: ImageRef) -> tuple[int, int]:
        """Width and height of what is sent for ``image``."""
        return self._limits.fit(image.width, image.height)

    async def url(self, image: ImageRef) -> bytes:
        """Make ``data:image/png;base64,…``. Raises ``ImageMissing``."""
        async with self._encoding.setdefault(image.sha256, asyncio.Lock()):
            if image.sha256 not in self._urls:
                url = await asyncio.get_running_loop().run_in_executor(self._threads, self._encode, image)
                self._urls[image.sha256] = url
                self._n_bytes += len(url)
                while self._n_bytes > self._max_bytes:
                    self._n_bytes -= len(self._urls.popitem(last=False)[1])
                return url
            self._urls.move_to_end(image.sha256)
            return self._urls[image.sha256]

    def close(self) -> None:
        """Empties the cache and ends the threads."""
        self._threads.shutdown()
        self._urls.clear()

    def _encode(self, image: ImageRef) -> bytes:
        if (size := self.size(image)) == (image.width, image.height):
            format, data = image.format, self._store.read(image)
        else:
            format = "JPEG" if image.format in ("JPEG", "MPO") else "PNG"
            options = {"quality": JPEG_QUALITY, "subsampling": 0} if format == "JPEG" else {"compress_level": 1}
            data = encode(self._store.open(image).resize(size, Image.Resampling.BICUBIC), format, **options)
        media_type = MEDIA_TYPES.get(format, f"image/{format.lower()}")
        return b"data:%s;base64,%s" % (media_type.encode(), pybase64.b64encode(data))
