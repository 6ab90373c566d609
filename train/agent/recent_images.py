"""The image store with what came last at hand.

A question's image is read twice right after it came, for the model and for the sandbox, and each crop once. Who reads
gets the bytes that were stored, which are not opened and digested again. An image about which another question is asked
meanwhile is not decoded again, and a plain PNG not at all.
"""

import threading
from collections import OrderedDict

from darkroom.pipelines.records import ImageRef, VideoRef
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.media_validation import MAX_PIXELS
from darkroom.train.agent.png_files import plain_png

MOST_BYTES = 128 * 2**20
_END_BYTES = 64
"""Of a file, by which it is looked up before all of it is compared: by its digest a new one would be digested twice."""


class RecentImages(ImageStore):
    """``store``, of which the last ``most_bytes`` that were stored through this one stay in memory."""

    def __init__(self, store: ImageStore, *, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(store.url, store._cache)
        self._most_bytes, self._n_bytes = most_bytes, 0
        self._recent: OrderedDict[str, bytes] = OrderedDict()
        self._sound: dict[bytes, ImageRef] = {}
        """Of these the ones that were decoded, by their end."""
        self._lock = threading.Lock()  # images are stored and read in several threads

    def ingest(self, data: bytes, *, max_pixels: int = MAX_PIXELS) -> ImageRef:
        """As the store's; a plain PNG whose CRCs are right is taken as sound."""
        known = self._sound.get(data[-_END_BYTES:])
        if known and known.width * known.height <= max_pixels and self._recent.get(known.sha256) == data:
            self._put(data)
            return known
        plain = plain_png(data)
        if plain is not None:
            width, height, mode = plain
            if width * height <= max_pixels:
                return ImageRef(self._put(data), width, height, mode, "PNG")
        image = super().ingest(data, max_pixels=max_pixels)
        if self._recent.get(image.sha256) == data:  # else it is another one, derived from it
            self._sound[data[-_END_BYTES:]] = image
        return image

    def read(self, ref: ImageRef | VideoRef | str) -> bytes:
        """As the store's."""
        data = self._recent.get(ref if isinstance(ref, str) else ref.sha256)
        return super().read(ref) if data is None else data

    def _put(self, data: bytes) -> str:
        sha256 = super()._put(data)
        with self._lock:
            if sha256 in self._recent:
                self._recent.move_to_end(sha256)
            elif len(data) <= self._most_bytes:
                self._recent[sha256] = data
                self._n_bytes += len(data)
            while self._n_bytes > self._most_bytes:
                oldest = self._recent.popitem(last=False)[1]
                self._n_bytes -= len(oldest)
                self._sound.pop(oldest[-_END_BYTES:], None)
        return sha256
