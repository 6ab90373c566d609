"""The image store with what came last at hand.

A question's image is read twice right after it came, for the model and for the sandbox, and each crop once. Who reads
gets the bytes that were stored, which are not opened and digested again.
"""

import threading
from collections import OrderedDict

from pipelines.records import ImageRef, VideoRef
from pipelines.storage.images import ImageStore

MOST_BYTES = 128 * 2**20


class RecentImages(ImageStore):
    """``store``, of which the last ``most_bytes`` that were stored through this one stay in memory."""

    def __init__(self, store: ImageStore, *, most_bytes: int = MOST_BYTES) -> None:
        vars(self).update(vars(store))  # the same place, the same cache
        self._most_bytes, self._n_bytes = most_bytes, 0
        self._recent: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()  # images are stored and read in several threads

    def read(self, ref: ImageRef | VideoRef | str) -> bytes:
        """As the store's."""
        data = self._recent.get(ref if isinstance(ref, str) else ref.sha256)
        return super().read(ref) if data is None else data

    def _put(self, data: bytes) -> str:
        sha256 = super()._put(data)
        with self._lock:
            if sha256 not in self._recent and len(data) <= self._most_bytes:
                self._recent[sha256] = data
                self._n_bytes += len(data)
            while self._n_bytes > self._most_bytes:
                self._n_bytes -= len(self._recent.popitem(last=False)[1])
        return sha256
