"""The order in which one call showed figures and wrote image files: the order of its observation's images.

Files are noticed where they are opened for writing (an audit hook, and a wrapper for cv2.imwrite, whose C code opens no
file that Python sees): the time stamps of the file system are too coarse, so that the order would differ from run to
run.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

import cv2

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
_PATH_VARIABLE = "processed_path"
_WRITING = os.O_WRONLY | os.O_RDWR


class Pixels(NamedTuple):
    """An image on its way to the host: raw RGB."""

    name: str
    width: int
    height: int
    data: bytes

    def is_same_picture(self, other: "Pixels") -> bool:
        return self[1:] == other[1:]


class Gallery:
    """What one call put up, in order: pixels as they were shown, files by path."""

    def __init__(self, *, max_images: int) -> None:
        self._max_images = max_images
        self.clear()

    def clear(self) -> None:
        self._shown: list[Pixels | str] = []
        self._n_shown = 0
        self.n_dropped = 0

    def install(self) -> None:
        """Once per process: an audit hook cannot be taken back."""
        sys.addaudithook(self._audit)
        write_file = cv2.imwrite

        def imwrite(filename: Any, img: Any, *args: Any, **options: Any) -> bool:
            written = write_file(filename, img, *args, **options)
            self._wrote(filename)
            return written

        setattr(cv2, "imwrite", imwrite)  # noqa: B010  # an overloaded function cannot be assigned in types

    def show(self, kind: str, width: int, height: int, pixels: Callable[[], bytes]) -> None:
        """Beyond the limit only counted: the pixels are not even computed."""
        if self._n_shown == self._max_images:
            self.n_dropped += 1
            return
        self._n_shown += 1
        self._shown.append(Pixels(f"{kind} {self._n_shown}", width, height, pixels()))

    @property
    def written(self) -> set[str]:
        """Files that this call opened for writing: one that it wrote anew may bear the same size and time stamp."""
        return {item for item in self._shown if isinstance(item, str)}

    def ordered(self, new_files: Iterable[str], held: Iterable[str]) -> list[Pixels | str]:
        """Everything shown, once each: a file stands where it was written last.

        `new_files` are those that this call really made or changed; `held` those that a variable names.
        """
        images = [path for path in new_files if path.lower().endswith(IMAGE_SUFFIXES)]
        written = {item: place for place, item in enumerate(self._shown) if isinstance(item, str)}
        items = [item for place, item in enumerate(self._shown) if _stays(item, place, written, images)]
        unnoticed = sorted(path for path in images if path not in written)
        return [*items, *unnoticed, *(path for path in held if path not in images)]

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(arguments[2], int) and arguments[2] & _WRITING:
                self._wrote(arguments[0])
        elif event == "os.rename":
            self._wrote(arguments[1])

    def _wrote(self, path: Any) -> None:
        if isinstance(path, str | PurePath) and str(path).lower().endswith(IMAGE_SUFFIXES):
            self._shown.append(os.path.realpath(path))


def held_paths(variables: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """What the variables called `...processed_path...` hold: a path or several (Thyme's convention)."""
    return {name: _paths_in(value) for name, value in list(variables.items()) if _PATH_VARIABLE in name.lower()}


def newly_held(before: Mapping[str, tuple[str, ...]], after: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Image files that such variables name since this call, in their order."""
    paths = [path for name, held in after.items() if before.get(name) != held for path in held]
    images = [os.path.realpath(path) for path in paths if path.lower().endswith(IMAGE_SUFFIXES) and "\0" not in path]
    return list(dict.fromkeys(path for path in images if os.path.isfile(path)))


def _paths_in(value: Any) -> tuple[str, ...]:
    several = value if isinstance(value, list | tuple) else (value,)
    return tuple(str(path) for path in several if isinstance(path, str | PurePath))


def _stays(item: Pixels | str, place: int, written: Mapping[str, int], images: list[str]) -> bool:
    return not isinstance(item, str) or (item in images and written[item] == place)
