"""Finds the files that a call made or changed, and reads the images among them."""

import os
import stat
from collections.abc import Container, Iterable
from typing import NamedTuple

from PIL import Image

from sandbox._guest.figures import to_rgb
from sandbox._guest.gallery import Pixels

_MAX_NOTE = 300


class _Stamp(NamedTuple):
    changed_ns: int
    n_bytes: int
    inode: int


class Budget:
    """Room that is left for images in one observation."""

    def __init__(self, *, n_images: int, n_bytes: int, max_pixels: int) -> None:
        self.n_images, self.n_bytes, self.max_pixels = n_images, n_bytes, max_pixels

    def check(self, width: int, height: int) -> None:
        """Raises ValueError, saying which limit an image of this size would break."""
        if width * height > self.max_pixels:
            raise ValueError(f"not shown: {width}x{height} pixels, at most {self.max_pixels} pixels are shown")
        if self.n_images < 1:
            raise ValueError("not shown: the observation has as many images as it may have")
        if width * height * 3 > self.n_bytes:
            raise ValueError("not shown: the images of the observation are too large together")

    def take(self, width: int, height: int) -> None:
        self.n_images -= 1
        self.n_bytes -= width * height * 3


class SavedFiles:
    """The files of a session, and which of them are new since the last look."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.realpath(folder)
        self._known: dict[str, _Stamp] = {}

    def look(self, noticed: Container[str]) -> dict[str, int]:
        """Path to size of every file that is new, changed or `noticed` to be written, in alphabetical order."""
        found, known = dict(self._walk()), self._known
        new = {p: stamp.n_bytes for p, stamp in found.items() if known.get(p) != stamp or p in noticed}
        self._known = found
        return dict(sorted(new.items()))

    def name_of(self, path: str) -> str:
        """Relative to the working folder; of an input, which lies elsewhere, the bare name."""
        inside = path.startswith(f"{self._folder}/")
        return os.path.relpath(path, self._folder) if inside else os.path.basename(path)

    def _walk(self) -> Iterable[tuple[str, _Stamp]]:
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    status = os.lstat(path)
                except OSError:
                    continue  # removed by a thread of the code since the listing
                if stat.S_ISREG(status.st_mode):
                    yield path, _Stamp(status.st_mtime_ns, status.st_size, status.st_ino)


def read_image(path: str, name: str, budget: Budget) -> Pixels:
    """Raises ValueError with the reason for which the file cannot be shown."""
    try:
        with Image.open(path) as image:
            budget.check(*image.size)
            pixels = to_rgb(image)
            return Pixels(name, *pixels.size, pixels.tobytes())
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"not shown: {type(error).__name__}: {error}"[:_MAX_NOTE]) from error
