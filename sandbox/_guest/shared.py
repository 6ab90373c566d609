"""Input images whose pixels all sessions of a group share, copy-on-write.

`Image.open(path)` parses the header as always; on its first load it adopts the pixels that the group decoded, marked
read-only, which is Pillow's own flag: the first change in place copies them. `cv2.imread(path)` hands out a private
mapping of the sealed pixels, of which the group made a few; only pages that are touched cost anything. Everything else
(draft, another flag, another file) is decoded as usual.

No session holds a descriptor of the pixels: its offset and time stamps would be a channel between sessions.
"""

import mmap
import os
import re
import sys
import weakref
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import cv2
import numpy as np
from PIL import Image, ImageFile

from darkroom.sandbox._guest.elsewhere import found
from darkroom.sandbox._guest.messages import DecodedImage
from darkroom.sandbox._guest.names import ImageLinks
from darkroom.sandbox._kernel import syscalls

NAMES_IMAGES = re.compile("image_clue|globals|locals|vars|dir|eval|exec|frame|inspect|__main__|__dict__|import_module")
_PILLOW = os.path.dirname(Image.__file__)
_N_MAPPINGS = 4
"""Arrays of one image that a session can hold at a time before they are copied whole."""


@dataclass(frozen=True)
class SharedImage:
    decoded: DecodedImage
    pixels: Image.Image | None
    arrays: "SharedArrays | None"


class Inputs(NamedTuple):
    """Inputs of a group's sessions."""

    images: list[SharedImage]
    video_paths: list[str]
    links: ImageLinks


def share(decoded: DecodedImage) -> SharedImage:
    """Take the pixels in, in the group, once, and close their descriptors."""
    pixels, arrays = None, None
    if decoded.pixels_fd >= 0:
        size = (decoded.width, decoded.height)
        with mmap.mmap(decoded.pixels_fd, 0, prot=mmap.PROT_READ) as raw:
            pixels = Image.frombytes(decoded.mode, size, cast(bytes, raw))
        os.close(decoded.pixels_fd)
    if decoded.bgr_fd >= 0:
        arrays = SharedArrays(decoded.bgr_fd, decoded.bgr_shape)
        os.close(decoded.bgr_fd)
    return SharedImage(decoded, pixels, arrays)


class SharedArrays:
    """Writable arrays for `cv2.imread`; one without references gives its mapping back, with changes undone."""

    def __init__(self, fd: int, shape: tuple[int, ...]) -> None:
        self._shape, self._n_bytes = shape, int(np.prod(shape))
        self._free = [syscalls.map_file(fd, self._n_bytes, shared=False) for _ in range(_N_MAPPINGS)]
        self._kept = syscalls.map_file(fd, self._n_bytes, shared=False)  # to copy from; never handed out

    def take(self) -> "np.ndarray[Any, Any]":
        """(height, width, 3) uint8, BGR."""
        if not self._free:
            return self._array(self._kept).reshape(self._shape).copy()
        address = self._free.pop()
        array = self._array(address)
        weakref.finalize(array, self._give_back, address)  # views hold this array, whatever is made of them
        return array.reshape(self._shape)

    def _array(self, address: int) -> "np.ndarray[Any, Any]":
        return np.frombuffer(syscalls.bytes_at(address, self._n_bytes), np.uint8)

    def _give_back(self, address: int) -> None:
        syscalls.restore(address, self._n_bytes)
        self._free.append(address)


def hook_readers(inputs: Inputs) -> None:
    """Give an input's shared pixels to `Image.open`, and to `cv2.imread` its arrays."""
    by_path = {image.decoded.path: image for image in inputs.images}
    target, paths = inputs.links.target, list(by_path)
    open_file, load_file, read_file = Image.open, ImageFile.ImageFile.load, cv2.imread

    def open_shared(fp: Any, mode: Any = "r", formats: Any = None) -> ImageFile.ImageFile:
        fp = found(fp, paths)
        image = open_file(fp, mode, formats)
        shared = by_path.get(target(fp))
        pixels = shared.pixels if shared else None
        if pixels is not None and pixels.size == image.size and pixels.mode == image.mode:
            vars(image)["_shared_pixels"] = pixels
        return image

    def load_shared(self: Any) -> Any:
        pixels = vars(self).pop("_shared_pixels", None)
        if pixels is not None and self.tile and self.size == pixels.size and self.mode == pixels.mode:
            _adopt(self, pixels)
        if self.readonly and not sys._getframe(1).f_code.co_filename.startswith(_PILLOW):
            self._copy()  # a caller with direct access to the pixels may write there
        return load_file(self)

    fill_from_bytes = Image.Image.frombytes

    def frombytes(self: Any, *args: Any, **options: Any) -> None:
        if self.readonly:
            self._copy()  # the one method of Pillow that writes without asking whether it may
        fill_from_bytes(self, *args, **options)

    def imread(filename: Any, flags: int = cv2.IMREAD_COLOR, *args: Any, **options: Any) -> Any:
        filename = found(filename, paths)
        shared = by_path.get(target(filename))
        if shared is None or shared.arrays is None or flags != cv2.IMREAD_COLOR or args or options:
            return read_file(filename, flags, *args, **options)
        return shared.arrays.take()

    Image.open = open_shared
    setattr(cv2, "imread", imread)  # noqa: B010  # an overloaded function cannot be assigned in types
    setattr(Image.Image, "frombytes", frombytes)  # noqa: B010
    setattr(ImageFile.ImageFile, "load", load_shared)  # noqa: B010  # assigning a method is not typed


def _adopt(image: Any, pixels: Any) -> None:
    """Do what Pillow does at the end of a load, with pixels that are already there."""
    image.im, image.readonly, image.tile = pixels.im, 1, []
    if getattr(image, "png", None) is not None:
        vars(image)["_text"] = image.png.im_text
        image.png = None
    if image._exclusive_fp and image._close_exclusive_fp_after_loading:
        image.fp.close()
        image.fp = None


def paths_of(images: list[SharedImage]) -> dict[str, object]:
    """The variables image_path, image_size, image_path_0, image_size_0, …"""
    names: dict[str, object] = {}
    for index, image in enumerate(images):
        names[f"image_path_{index}"] = image.decoded.path
        names[f"image_size_{index}"] = (image.decoded.width, image.decoded.height)
    if images:
        names["image_path"] = names["image_path_0"]
        names["image_size"] = names["image_size_0"]
    return names


def opened(images: list[SharedImage]) -> dict[str, object]:
    """The variables image_clue_0, …; in the session, since reading a header trusts the file."""
    return {f"image_clue_{index}": Image.open(image.decoded.path) for index, image in enumerate(images)}
