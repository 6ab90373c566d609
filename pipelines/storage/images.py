"""The image store: every image and video once, by the sha256 of its bytes, as the bytes it came in.

``<root>/ab/abcdef…`` on any fsspec URL (a folder by default). Writing the same bytes twice writes nothing (in a remote
store: on one machine); a write is seen whole or not at all. Files of a remote store are cached in a local folder,
bounded in bytes and shared by processes: modification times say when each was last used, the longest unused go first.
Decoded images stay in memory for a while: the checks of a row open the same few again and again.
"""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

from fsspec.implementations.local import LocalFileSystem
from PIL import Image

from darkroom.pipelines.records import ImageRef, VideoRef
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.media_validation import MAX_PIXELS, decode, eight_bit, encode, probe, probe_video
from darkroom.pipelines.storage.storage_errors import storage_errors
from darkroom.pipelines.storage.store_paths import filesystem, read_at_once

_ORPHAN_SECONDS = 3600
"""A part of a file that is older was left by a process that was killed while it wrote."""
_N_LOOKS = 20
"""Per ``max_bytes`` written: how often a process looks what all of them have written."""


class _File(NamedTuple):
    used_at: float
    n_bytes: int
    path: str


class ImageCache:
    """At most ``max_bytes``, and a twentieth more for each process that writes at the moment."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder, self.max_bytes = folder, max_bytes
        self._n_unseen = max_bytes  # the first write looks what is there

    def get(self, sha256: str) -> bytes | None:
        """The bytes, if they are here and what they were; a file that was changed is deleted."""
        path = self._path(sha256)
        try:
            data = path.read_bytes()
            os.utime(path)
        except FileNotFoundError:  # or another process evicted it just now
            return None
        if digest_bytes(data) != sha256:
            path.unlink(missing_ok=True)
            return None
        return data

    def has(self, sha256: str) -> bool:
        """True if the cache has the file, which is not read."""
        return self._path(sha256).exists()

    def put(self, sha256: str, data: bytes) -> None:
        """Keeps ``data``, and makes room. Raises ``StorageError`` when the disk cannot be written."""
        path = self._path(sha256)
        if len(data) > self.max_bytes // _N_LOOKS or path.exists():
            return
        write_whole(path, data)
        self._n_unseen += len(data)
        if self._n_unseen < self.max_bytes // _N_LOOKS:
            return
        self._n_unseen = 0
        files = sorted(self._files())
        n_bytes = sum(file.n_bytes for file in files)
        for file in files:
            if n_bytes <= self.max_bytes:
                return
            n_bytes -= file.n_bytes
            Path(file.path).unlink(missing_ok=True)  # another process may be quicker

    def _path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def _files(self) -> Iterator[_File]:
        """Cached files, without parts that are being written."""
        now = time.time()
        for folder in sorted(self.folder.iterdir()):
            with os.scandir(folder) as entries:
                for entry in entries:
                    try:
                        stat = entry.stat()
                    except FileNotFoundError:  # evicted, or renamed to its name, just now
                        continue
                    if not entry.name.startswith(".") or now - stat.st_mtime > _ORPHAN_SECONDS:
                        yield _File(stat.st_mtime, stat.st_size, entry.path)


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
            with self._lock:
                if sha256 in self._images:
                    self._images.move_to_end(sha256)
                image = self._images.get(sha256)
            if image is None:
                image = decode(data)
                with self._lock:
                    self._images[sha256] = image
                    self._n_bytes += _size(image)
                    while self._n_bytes > self._max_bytes:
                        self._n_bytes -= _size(self._images.popitem(last=False)[1])
            shared = image._new(image.im)  # of the same pixels, which Pillow copies before it changes one
            shared.readonly = 1
            return shared


def _size(image: Image.Image) -> int:
    """In memory: four bytes a pixel, whatever the mode but grey."""
    return image.width * image.height * (1 if image.mode in ("L", "P") else 4)


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
        """Stores an image from outside and returns the one to use: itself, or its upright, opaque 8-bit form. Raises
        ``RowError`` when ``data`` is not one sound image (``pipelines/storage/media_validation.py``)."""
        return self.ingest_pixels(data, max_pixels=max_pixels)[0]

    def ingest_pixels(self, data: bytes, *, max_pixels: int = MAX_PIXELS) -> tuple[ImageRef, Image.Image]:
        """``ingest``, with the pixels of the image to use: large ones are decoded once."""
        probed = probe(data, max_pixels=max_pixels)
        opened = probed.image
        image = ImageRef(self._put(data), opened.width, opened.height, opened.mode, opened.format or "")
        if probed.plain is not None:
            image = self.add_pixels(probed.plain, parent=image.sha256, made_by=f"ingest: {probed.made_by}")
        return image, probed.plain or opened

    def add_view(self, image: Image.Image, *, parent: str, made_by: str) -> ImageRef:
        """Stores pixels for people to look at: a JPEG, or a PNG if they have an alpha channel."""
        if image.mode == "RGBA":
            return self.add_pixels(image, parent=parent, made_by=made_by)
        sha256 = self._put(encode(image, "JPEG", quality=92, subsampling=0))
        return ImageRef(sha256, image.width, image.height, image.mode, "JPEG", parent=parent, made_by=made_by)

    def add_pixels(self, image: Image.Image, *, parent: str | None = None, made_by: str | None = None) -> ImageRef:
        """Stores pixels that were made here, as a PNG without metadata (equal pixels give equal bytes)."""
        plain = eight_bit(image)
        clean = Image.frombytes(plain.mode, plain.size, plain.tobytes())
        # level 6 takes five times as long for a tenth fewer bytes
        sha256 = self._put(encode(clean, "PNG", compress_level=1))
        return ImageRef(sha256, clean.width, clean.height, clean.mode, "PNG", parent=parent, made_by=made_by)

    def add_video(self, data: bytes) -> VideoRef:
        """Stores a video from outside. Raises ``RowError`` when it is not a sound one (``media_validation.py``)."""
        video = probe_video(data)
        self._put(data)
        return video

    def read(self, ref: ImageRef | VideoRef | str) -> bytes:
        """The stored bytes. Raises ``ImageMissing`` for missing or changed ones, ``StorageError`` without the store."""
        sha256 = ref if isinstance(ref, str) else ref.sha256
        if self._cache is not None and (cached := self._cache.get(sha256)) is not None:
            return cached
        path = self._path(sha256)
        try:
            with storage_errors(self.url):
                data = read_at_once(self._fs, path)
        except FileNotFoundError as error:
            mend = "restore it, or delete its rows' table to take the source in again"
            raise ImageMissing(f"{path} is not in the image store; {mend}") from error
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

    def files(self) -> Iterator[tuple[str, int, float]]:
        """Every stored file: digest, bytes, when it was stored (seconds since 1970). Raises ``StorageError``."""
        with storage_errors(self.url):
            files = self._fs.find(self._root, detail=True) if self._fs.exists(self._root) else {}
        for path, file in files.items():
            stored = next(file[name] for name in ("mtime", "LastModified", "updated", "last_modified") if name in file)
            yield path.rpartition("/")[2], file["size"], stored if isinstance(stored, float) else stored.timestamp()

    def delete(self, sha256: str) -> None:
        """Delete a stored file, if it is there. Raises ``StorageError``."""
        with storage_errors(self.url), suppress(FileNotFoundError):
            self._fs.rm_file(self._path(sha256))

    def path(self, ref: ImageRef) -> str:
        """Path of the image's file in its file system."""
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
                if self._local:
                    with suppress(PermissionError):  # another person's file
                        os.utime(path)  # it is wanted again: to `darkroom remove --unused` it is new
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
