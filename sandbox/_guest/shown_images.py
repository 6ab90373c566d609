"""The order in which one call showed figures and wrote image files: the order of its observation's images.

Files are noticed where they are opened for writing, by an audit hook, and for cv2.imwrite, whose C code opens no file
that Python sees, by a wrapper: the time stamps of the file system are too coarse for an order.
"""

import os
import stat
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NamedTuple
from weakref import ref

import cv2
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageFile

from darkroom.sandbox._guest.messages import note
from darkroom.sandbox._guest.names import ImageLinks

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
_PATH_VARIABLE = "processed_path"
_END_OF_JPEG = b"\xff\xd9"
_read_file, _list_folder = cv2.imread, os.scandir  # as they were before the sandbox, or the code, put others there
_WRITING = os.O_WRONLY | os.O_RDWR


class Pixels(NamedTuple):
    """An image on its way to the host: raw RGB."""

    name: str
    width: int
    height: int
    data: bytes


class ShownImages:
    """Images of one call, in order: pixels as they were shown, files by path."""

    def __init__(self, links: ImageLinks, *, max_images: int, max_pixels: int) -> None:
        self._links, self._max_images, self._max_pixels = links, max_images, max_pixels
        self._left = list[ref[Figure]]()
        """Figures that pyplot has closed, which the code may hold and change."""
        self.clear()

    def clear(self) -> None:
        self._shown: dict[str, Pixels | None] = {}
        """By name, in order; a file, by its path, where it was written last."""
        self._n_shown = self.n_dropped = 0

    def install(self) -> None:
        """Hook into all that shows or writes images; once per process, since an audit hook cannot be removed."""
        sys.addaudithook(self._audit)
        write_file = cv2.imwrite

        def imwrite(filename: Any, img: Any, *args: Any, **options: Any) -> bool:
            self._links.give_way(filename)
            if not (is_written := write_file(filename, img, *args, **options)):
                note(f"cv2.imwrite could not write {filename}: files are written to {os.environ.get('HOME')}")
            self._wrote(filename)
            return is_written

        setattr(cv2, "imwrite", imwrite)  # noqa: B010  # an overloaded function cannot be assigned in types
        plt.show, display = self._show_all, self.display

        def show(thing: Image.Image | Figure, *_: Any, **_options: Any) -> None:
            display(thing)

        setattr(Image.Image, "show", show)  # noqa: B010  # assigning a method is not typed
        setattr(Figure, "show", show)  # noqa: B010

    def display(self, *things: Any, **_options: Any) -> None:
        """IPython's: an image or a figure is shown, anything else printed."""
        for thing in things:
            if isinstance(thing, Image.Image):
                self._keep("display", thing.size, lambda image=thing: to_rgb(image).tobytes())
            elif isinstance(thing, Figure):
                self._draw(thing)
            else:
                print(repr(thing))

    def show_value(self, value: Any) -> None:
        """Show a last expression's value; a drawing, which its figure shows, prints nothing."""
        parts = value if isinstance(value, list | tuple) else (value,)
        if value is not None and not any(isinstance(part, Artist) and not isinstance(part, Figure) for part in parts):
            self.display(value)

    def show_unshown(self) -> None:
        """Show figures that changed since they were shown or saved, as a notebook does at the end of a cell."""
        for figure in self._closed_figures() if plt.get_fignums() or self._left else ():
            try:
                if figure.stale and len(figure.get_children()) > 1:  # one that was cleared has its background alone
                    self._draw(figure)
            except Exception as error:  # noqa: BLE001 - drawing runs what the code has put into the figure
                note(f"a figure is not shown: {error}")
                self._left = [left for left in self._left if left() is not figure]

    def forget_figures(self) -> None:
        """Show none of the figures of a call that failed in a later one."""
        plt.close("all")
        self._left = []

    def _show_all(self, *_args: Any, **_options: Any) -> None:
        """Show all that is open, and again what an earlier call has made and this one changed."""
        opened = list(map(plt.figure, plt.get_fignums()))
        for figure in self._closed_figures():
            if figure in opened or (figure.stale and len(figure.get_children()) > 1):
                self._draw(figure)

    def _closed_figures(self) -> list[Figure]:
        """Close what is open, and list it after those figures that were closed before."""
        opened = list(map(plt.figure, plt.get_fignums()))
        held = [figure for left in self._left if (figure := left()) is not None and figure not in opened]
        self._left = [ref(figure) for figure in held + opened]
        plt.close("all")
        return held + opened

    def _draw(self, figure: Any) -> None:
        canvas: Any = figure.canvas if isinstance(figure.canvas, FigureCanvasAgg) else FigureCanvasAgg(figure)

        def pixels() -> bytes:
            canvas.draw()
            return np.asarray(canvas.buffer_rgba())[..., :3].tobytes()

        self._keep("figure", canvas.get_width_height(), pixels)

    def _keep(self, kind: str, size: tuple[int, int], pixels: Callable[..., bytes]) -> None:
        """Keep an image; beyond the limit it is only counted, its pixels not even computed."""
        width, height = size
        if width * height > self._max_pixels:
            raise ValueError(f"{kind} of {width}x{height} pixels is too large: at most {self._max_pixels} pixels")
        if self._n_shown == self._max_images:
            self.n_dropped += 1
            return
        self._n_shown += 1
        name = f"{kind} {self._n_shown}"
        self._shown[name] = Pixels(name, width, height, pixels())

    @property
    def written(self) -> set[str]:
        """Files that this call opened for writing: one that it wrote anew may bear the same size and time stamp."""
        return {path for path, pixels in list(self._shown.items()) if pixels is None}

    def ordered(self, new_files: Iterable[str], held: Iterable[str]) -> list[Pixels | str]:
        """Everything shown, once each; `held` are the files that variables name."""
        images = {path for path in new_files if path.lower().endswith(IMAGE_SUFFIXES)}
        items = [pixels or name for name, pixels in list(self._shown.items()) if pixels or name in images]
        return [*items, *sorted(images - self._shown.keys()), *(path for path in held if path not in images)]

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(arguments[2], int) and arguments[2] & _WRITING:
                if arguments[2] & os.O_TRUNC:
                    self._links.give_way(arguments[0])
                self._wrote(arguments[0])
        elif event == "os.rename":
            self._wrote(arguments[1])

    def _wrote(self, path: Any) -> None:
        if isinstance(path, str | PurePath) and str(path).lower().endswith(IMAGE_SUFFIXES):
            self._shown.pop(real := os.path.realpath(path), None)
            self._shown[real] = None


def held_paths(variables: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Paths in the variables called `...processed_path...`: one or several each (Thyme's convention)."""
    return {name: _paths_in(value) for name, value in list(variables.items()) if _PATH_VARIABLE in str(name).lower()}


def newly_held(before: Mapping[str, tuple[str, ...]], after: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Image files that such variables name since this call, in their order."""
    paths = [path for name, held in after.items() if before.get(name) != held for path in held]
    images = [os.path.realpath(path) for path in paths if path.lower().endswith(IMAGE_SUFFIXES) and "\0" not in path]
    return list(dict.fromkeys(path for path in images if os.path.isfile(path)))


def _paths_in(value: Any) -> tuple[str, ...]:
    several = value if isinstance(value, list | tuple) else (value,)
    return tuple(str(path) for path in several if isinstance(path, str | PurePath))


_MAX_NOTE = 300


class _Stamp(NamedTuple):
    changed_ns: int
    n_bytes: int
    inode: int


class OverLimit(ValueError):
    """An image that a limit of the observation keeps back; the message says which."""


@dataclass
class Budget:
    """Room that is left for images in one observation."""

    n_images: int
    n_bytes: int
    max_pixels: int

    def check(self, width: int, height: int) -> None:
        """Check the limits for an image of this size. Raises OverLimit."""
        if width * height > self.max_pixels:
            raise OverLimit(f"not shown: {width}x{height} pixels, at most {self.max_pixels} pixels are shown")
        if self.n_images < 1:
            raise OverLimit("not shown: the observation has as many images as it may have")
        if width * height * 3 > self.n_bytes:
            raise OverLimit("not shown: the images of the observation are too large together")

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
        earlier, self._known = self._known, dict(self._walk())
        new = {p: stamp.n_bytes for p, stamp in self._known.items() if earlier.get(p) != stamp or p in noticed}
        return dict(sorted(new.items()))

    def name_of(self, path: str) -> str:
        """Relative to the working folder; of an input, which lies elsewhere, the bare name."""
        inside = path.startswith(f"{self._folder}/")
        return os.path.relpath(path, self._folder) if inside else os.path.basename(path)

    def _walk(self) -> Iterable[tuple[str, _Stamp]]:
        # os.walk takes three times as long, which is a tenth of an empty call
        own, folders = None, [self._folder]
        with suppress(OSError):
            own = os.lstat(self._folder).st_dev
        for folder in folders:
            entries: list[os.DirEntry[str]] = []
            with suppress(OSError), _list_folder(folder) as listed:
                entries = list(listed)
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # removed by a thread of the code since the listing
                if stat.S_ISREG(status.st_mode):
                    yield entry.path, _Stamp(status.st_mtime_ns, status.st_size, status.st_ino)
                elif stat.S_ISDIR(status.st_mode) and status.st_dev == own:
                    folders.append(entry.path)  # not where a library that lies below the host's /tmp is shown


def read_image(path: str, name: str, budget: Budget) -> Pixels:
    """Read an image file. Raises ValueError with the reason for which it cannot be shown."""
    try:
        with Image.open(path) as image:
            budget.check(*image.size)
            return Pixels(name, *image.size, _pixels_of_whole_jpeg(image, path) or to_rgb(image).tobytes())
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"not shown: {type(error).__name__}: {error}"[:_MAX_NOTE]) from error


def _pixels_of_whole_jpeg(image: ImageFile.ImageFile, path: str) -> bytes | None:
    """Decode like Pillow in two thirds of its time: by OpenCV, which would also take a file that is cut short."""
    if image.format != "JPEG" or image.mode != "RGB" or image.fp is None:
        return None
    image.fp.seek(-len(_END_OF_JPEG), os.SEEK_END)
    if image.fp.read() != _END_OF_JPEG:
        return None
    pixels = _read_file(path, cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)
    return None if pixels is None or pixels.shape != (image.height, image.width, 3) else pixels.tobytes()


def to_rgb(image: Image.Image) -> Image.Image:
    """RGB as a viewer shows it: transparency on white, 16 bits scaled to 8."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode == "RGB" and "transparency" not in image.info:
        image.load()
        return image
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return image.convert("RGB")
