"""Finds the image files that a call saved, and which of them the code meant to show.

Shown are the new files that the output names; if it names none, those that a variable called `...processed_path...`
holds; if there is none, all of them, oldest first.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from PIL import Image

from sandbox._guest.figures import Pixels, to_rgb

_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
_PATH_VARIABLE = "processed_path"
_MAX_NOTE = 300


class _Stamp(NamedTuple):
    changed_ns: int
    n_bytes: int
    inode: int


class Budget:
    """Room that is left for images in one observation."""

    def __init__(self, *, n_images: int, n_bytes: int, max_pixels: int) -> None:
        self.n_images, self.n_bytes, self.max_pixels = n_images, n_bytes, max_pixels

    def take(self, width: int, height: int) -> None:
        """Raises ValueError, saying which limit an image of this size breaks."""
        if width * height > self.max_pixels:
            raise ValueError(f"not shown: {width}x{height} pixels, at most {self.max_pixels} pixels are shown")
        if self.n_images < 1:
            raise ValueError("not shown: the observation has as many images as it may have")
        if width * height * 3 > self.n_bytes:
            raise ValueError("not shown: the images of the observation are too large together")
        self.n_images -= 1
        self.n_bytes -= width * height * 3


class SavedFiles:
    """The files of a session, and which of them are new since the last look."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[str, _Stamp] = {}

    def look(self) -> dict[str, int]:
        """Path to size of every file that is new or changed, oldest first."""
        found = dict(self._walk())
        new = {path: stamp for path, stamp in found.items() if self._known.get(path) != stamp}
        self._known = found
        return {path: new[path].n_bytes for path in sorted(new, key=lambda path: (new[path].changed_ns, path))}

    def name_of(self, path: str) -> str:
        return os.path.relpath(path, self._folder)

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


def choose_shown(new_paths: Iterable[str], text: str, variables: Mapping[str, Any]) -> list[str]:
    images = [path for path in new_paths if path.lower().endswith(_IMAGE_SUFFIXES)]
    printed = {path: position for path in images if (position := _position(path, text)) is not None}
    if printed:
        return sorted(printed, key=lambda path: printed[path])
    held = {os.path.realpath(path) for path in _held_paths(variables)}
    return [path for path in images if path in held] or images


def read_image(path: str, name: str, budget: Budget) -> Pixels:
    """Raises ValueError with the reason for which the file cannot be shown."""
    try:
        with Image.open(path) as image:
            budget.take(*image.size)
            pixels = to_rgb(image)
            return Pixels(name, *pixels.size, pixels.tobytes())
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"not shown: {type(error).__name__}: {error}"[:_MAX_NOTE]) from error


def _position(path: str, text: str) -> int | None:
    match = re.search(rf"(?<![\w.-]){re.escape(os.path.basename(path))}(?!\w)", text)
    return match.start() if match else None


def _held_paths(variables: Mapping[str, Any]) -> Iterable[str]:
    for name, value in list(variables.items()):
        if _PATH_VARIABLE in name.lower():
            values = value if isinstance(value, list | tuple) else [value]
            yield from (str(item) for item in values if isinstance(item, str | PurePath))
