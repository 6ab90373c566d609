"""The image store: every image and every video once, by the sha256 of its bytes, as the bytes it came in.

``<root>/ab/abcdef…`` on any fsspec URL (a folder by default). Writing the same bytes twice writes nothing (in a
remote store: on one machine); a write is seen whole or not at all, so a killed process leaves no half image behind.
What is read from a remote store is kept in a local cache (``image_cache.py``).
"""

import io
from pathlib import Path

from fsspec.implementations.local import LocalFileSystem
from PIL import Image

from darkroom.pipelines.records import ImageRef, VideoRef
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.decoded_images import DecodedImages
from darkroom.pipelines.storage.image_cache import ImageCache
from darkroom.pipelines.storage.media_validation import MAX_PIXELS, decode, eight_bit, probe, probe_video
from darkroom.pipelines.storage.places import filesystem, read_at_once
from darkroom.pipelines.storage.storage_errors import storage_errors


class ImageMissing(Exception):
    """An image that a table refers to is not in the store."""


class ImageStore:
    """Images by content.

    >>> store = ImageStore("data/images")
    >>> ref = store.ingest(Path("street.jpg").read_bytes())
    >>> store.open(ref).size == (ref.width, ref.height)
    True
    """

    def __init__(self, url: str, cache: ImageCache | None = None) -> None:
        """``cache``: of a remote store. Raises ``StorageError`` for a URL that none can have."""
        self.url = url
        self._fs, self._root = filesystem(url)
        self._local = isinstance(self._fs, LocalFileSystem)
        self._cache = None if self._local else cache

    def ingest(self, data: bytes, *, max_pixels: int = MAX_PIXELS) -> ImageRef:
        """Stores an image from outside and returns the one to use: itself, or its upright 8-bit form.

        Raises ``RowError`` with a typed reason when ``data`` is not one sound image
        (``pipelines/storage/media_validation.py``).
        """
        return self.ingest_pixels(data, max_pixels=max_pixels)[0]

    def ingest_pixels(self, data: bytes, *, max_pixels: int = MAX_PIXELS) -> tuple[ImageRef, Image.Image]:
        """``ingest``, with the pixels of the image to use: large ones are decoded once."""
        probed = probe(data, max_pixels=max_pixels)
        image = ImageRef(self._put(data), probed.width, probed.height, probed.mode, probed.format)
        if probed.plain is not None:
            image = self.add_pixels(probed.plain, parent=image.sha256, made_by=f"ingest: {probed.made_by}")
        return image, probed.pixels

    def add_view(self, image: Image.Image, *, parent: str, made_by: str) -> ImageRef:
        """Stores pixels for people to look at: a JPEG, or a PNG if they have an alpha channel."""
        if image.mode == "RGBA":
            return self.add_pixels(image, parent=parent, made_by=made_by)
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=92, subsampling=0)
        sha256 = self._put(buffer.getvalue())
        return ImageRef(sha256, image.width, image.height, image.mode, "JPEG", parent=parent, made_by=made_by)

    def add_pixels(self, image: Image.Image, *, parent: str | None = None, made_by: str | None = None) -> ImageRef:
        """Stores pixels that were made here, as a PNG without metadata (equal pixels give equal bytes)."""
        plain = eight_bit(image)
        clean = Image.frombytes(plain.mode, plain.size, plain.tobytes())
        buffer = io.BytesIO()
        clean.save(buffer, "PNG", compress_level=1)  # level 6 takes five times as long for a tenth fewer bytes
        sha256 = self._put(buffer.getvalue())
        return ImageRef(sha256, clean.width, clean.height, clean.mode, "PNG", parent=parent, made_by=made_by)

    def add_video(self, data: bytes) -> VideoRef:
        """Stores a video from outside. Raises ``RowError`` when it is not a sound one
        (``pipelines/storage/media_validation.py``)."""
        video = probe_video(data)
        self._put(data)
        return video

    def read(self, ref: ImageRef | VideoRef | str) -> bytes:
        """The stored bytes. Raises ``ImageMissing`` when they are not there or are not what they were, ``StorageError``
        when the store cannot be reached."""
        sha256 = ref if isinstance(ref, str) else ref.sha256
        if self._cache is not None and (cached := self._cache.get(sha256)) is not None:
            return cached
        path = self._path(sha256)
        try:
            with storage_errors(self.url):
                data = read_at_once(self._fs, path)
        except FileNotFoundError as error:
            raise ImageMissing(
                f"{path} is not in the image store; restore it, or delete its rows' table to take the source in again"
            ) from error
        if digest_bytes(data) != sha256:
            raise ImageMissing(f"{path} was changed: its bytes no longer have the digest of its name; delete it")
        if self._cache is not None:
            self._cache.put(sha256, data)
        return data

    def open(self, ref: ImageRef) -> Image.Image:
        """The pixels, for the caller alone. Raises ``ImageMissing``."""
        data = self.read(ref)
        # checks open the image of a row five times and more, and rows about one image follow each other
        return _DECODED.get(ref.sha256, data, decode) if ref.width * ref.height <= _KEPT_PIXELS else decode(data)

    def path(self, ref: ImageRef) -> str:
        """Where the image's file lies in its file system."""
        return self._path(ref.sha256)

    def _path(self, sha256: str) -> str:
        return f"{self._root}/{sha256[:2]}/{sha256}"

    def _put(self, data: bytes) -> str:
        sha256 = digest_bytes(data)
        path = self._path(sha256)
        # what is new here is most likely new there: to ask first would be two requests more for each image
        may_be_there = self._cache is None or self._cache.has(sha256)
        with storage_errors(self.url):
            if may_be_there and self._fs.exists(path):
                return sha256
        if self._local:
            write_whole(Path(path), data)
        else:
            with storage_errors(self.url, writes=True):
                self._fs.pipe_file(path, data)  # object stores show an object only when it is complete
        if self._cache is not None:
            self._cache.put(sha256, data)  # what is made is read soon
        return sha256


_KEPT_PIXELS = 16_000_000
"""Of each of the images that stay decoded."""
_DECODED = DecodedImages(256 * 2**20)
