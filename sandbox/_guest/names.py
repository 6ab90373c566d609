"""The names by which a prompt calls its images: code opens them as it opens any file, and finds the task's image.

For `/data/179.jpg` there are links in the working folder, `data/179.jpg` and `179.jpg`. String literals of the code
that are a name outside of it are pointed there, and so are absolute paths that end in a name (`place_of`).

A link leads to an input of the session's own group and nowhere else; code that saves a file there replaces it.
"""

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

MAX_NAME_BYTES = 255


def check_names(names: Sequence[str]) -> None:
    """Check names of images. Raises ValueError for one that no file can have; an empty name is none."""
    for name in names:
        if len(os.fsencode(name)) > MAX_NAME_BYTES or "\0" in name or not (_place(name) or not name):
            raise ValueError(f"{name[:MAX_NAME_BYTES]!r} cannot name an image: it takes a path of up to 255 bytes")


class ImageLinks:
    """The names of one group's images; the links are made once per session, by `make`."""

    def __init__(self, names: Sequence[str], paths: Sequence[str]) -> None:
        self._names = [name for name, _ in zip(names, paths, strict=False)]
        self._paths = frozenset(paths)
        self._targets: dict[str, str] = {}
        for name, path in zip(self._names, paths, strict=False):
            if name:
                self._targets.setdefault(_place(name), path)
        times = Counter(os.path.basename(_place(name)) for name in set(self._names))
        for name, path in zip(self._names, paths, strict=False):
            if times[file := os.path.basename(_place(name))] == 1 and file:  # else it could mean either
                self._targets.setdefault(file, path)
        self._files = frozenset(map(os.path.basename, self._targets))
        self.named = bool(self._targets)

    def settle(self, work_folder: str) -> None:
        """Names that lead out of the working folder, and their folders, have a place below it."""
        self._work_folder = work_folder
        outside = [name for name in self._names if name.startswith("/") or ".." in PurePosixPath(name).parts]
        outside += [folder for name in outside if _place(folder := os.path.dirname(name))]
        self.moved = {name: f"{work_folder}/{_place(name)}" for name in outside}

    def make(self) -> None:
        for place, path in self._targets.items():
            link = f"{self._work_folder}/{place}"
            with suppress(FileExistsError, NotADirectoryError):  # another name takes it up: the first one keeps it
                os.makedirs(os.path.dirname(link), exist_ok=True)
                os.symlink(path, link)

    def place_of(self, text: str) -> str | None:
        """Path for a string literal that is a name, or an absolute path that ends in one; None for any other."""
        plain = text.rstrip("/")
        if plain in self.moved:
            return self.moved[plain] + text[len(plain) :]
        folder, file = os.path.split(text)
        if file not in self._files or not folder.startswith("/") or os.path.exists(text) or os.access(folder, os.W_OK):
            return None
        places = [place for place in self._targets if text.endswith(f"/{place}")]
        return f"{self._work_folder}/{max(places, key=len)}" if places else None

    def target(self, file: Any) -> str:
        """The path of the input that a path leads to; another path as it is; empty for an open file."""
        try:
            path = str(os.fspath(file))
        except TypeError:
            return ""
        return self._input(path) or path

    def give_way(self, path: Any) -> None:
        """Take a link away, over which the code is about to write a file of its own."""
        if isinstance(path, str | os.PathLike) and self._input(str(os.fspath(path))):
            os.unlink(path)

    def _input(self, path: str) -> str | None:
        if os.path.basename(path) in self._files:
            with suppress(OSError, ValueError):
                target = os.readlink(path)
                return target if target in self._paths else None
        return None


def _place(name: str) -> str:
    """Make `data/179.jpg` of `/data/../179.jpg`, relative to the working folder."""
    return "/".join(part for part in PurePosixPath(name).parts if part.strip("/") and part != "..")
