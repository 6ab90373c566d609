"""Images that stay decoded for a while: the checks of a row open the same few again and again, several rows at a time.

decoded = DecodedImages(128 * 2**20)
decoded.get("5e6f…", data, decode)      # for the caller alone; decoded once, whoever asks at the same time
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from weakref import WeakValueDictionary

from PIL import Image


class DecodedImages:
    """The last ``max_bytes`` of pixels that were asked for, by the digest of the bytes they came from."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._n_bytes = max_bytes, 0
        self._images: OrderedDict[str, Image.Image] = OrderedDict()
        self._lock = threading.Lock()
        self._decoding: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        """Who has an image's lock decodes it; the others wait."""

    def get(self, sha256: str, data: bytes, decode: Callable[[bytes], Image.Image]) -> Image.Image:
        """The pixels of ``data``, for the caller alone. Raises what ``decode`` raises."""
        with self._lock:
            decoding = self._decoding.setdefault(sha256, threading.Lock())
        with decoding:
            image = self._kept(sha256)
            if image is None:
                image = decode(data)
                self._keep(sha256, image)
            return _shared(image)

    def _kept(self, sha256: str) -> Image.Image | None:
        with self._lock:
            if sha256 in self._images:
                self._images.move_to_end(sha256)
            return self._images.get(sha256)

    def _keep(self, sha256: str, image: Image.Image) -> None:
        with self._lock:
            self._images[sha256] = image
            self._n_bytes += _size(image)
            while self._n_bytes > self._max_bytes:
                self._n_bytes -= _size(self._images.popitem(last=False)[1])


def _shared(image: Image.Image) -> Image.Image:
    """An image of the same pixels, which Pillow copies before it changes one."""
    shared = image._new(image.im)
    shared.readonly = 1
    return shared


def _size(image: Image.Image) -> int:
    """In memory: four bytes a pixel, whatever the mode but grey."""
    return image.width * image.height * (1 if image.mode in ("L", "P") else 4)
