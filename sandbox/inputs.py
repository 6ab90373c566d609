"""Input images and videos as file descriptors: the host hands bytes over and looks into none of them."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from darkroom.sandbox.errors import ImageUnreadable, InputsTooLarge, SandboxError
from darkroom.sandbox.limits import Limits

ImageInput = str | Path | bytes | Image.Image
"""A file, the bytes of a file, or an image in memory (stored losslessly)."""
VideoInput = str | Path | bytes
"""A file, or the bytes of one."""

_PNG_MODES = {"1", "L", "LA", "P", "RGB", "RGBA", "I;16"}
_FASTEST_COMPRESSION = 1
_MACHINE_ERRORS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
"""Of opening a file, which say nothing of the file."""
_VIDEO_SUFFIXES = {".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".gif", ".mpg", ".mpeg", ".ts", ".flv", ".wmv"}


@contextmanager
def open_inputs(images: Sequence[ImageInput], videos: Sequence[VideoInput], limits: Limits) -> Iterator[list[int]]:
    """One descriptor per image, then per video, closed at the end. Raises ImageUnreadable, SandboxError,
    InputsTooLarge, OSError."""
    fds: list[int] = []
    try:
        for index, image in enumerate(images):
            _open(index, image, fds)
        for index, video in enumerate(videos):
            try:
                _open(index, video, fds)
            except ImageUnreadable as error:
                raise SandboxError(f"video {index} cannot be opened: {error.reason}") from error
        if (n_bytes := sum(os.fstat(fd).st_size for fd in fds)) > limits.input_mb << 20:
            size = f"{n_bytes / (1 << 20):.0f} MB together, at most {limits.input_mb} are allowed"
            mend = "give fewer or smaller ones, or raise Limits.input_mb"
            raise InputsTooLarge(f"the images and videos of a group have {size}: {mend}")
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


def suffix_of(video: VideoInput) -> str:
    """Suffix of a video's file in the sandbox. Nothing else of the host's name goes in: it may tell the answer."""
    suffix = "" if isinstance(video, bytes) else Path(video).suffix.lower()
    return suffix if suffix in _VIDEO_SUFFIXES else ".mp4"


def _open(index: int, image: ImageInput, fds: list[int]) -> None:
    """Open one more, which `open_inputs` closes should anything fail."""
    if isinstance(image, str | Path):
        try:
            fds.append(os.open(image, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))  # a pipe must not make us wait
        except OSError as error:
            if error.errno in _MACHINE_ERRORS:
                raise
            raise ImageUnreadable(index, str(error)) from error
        if not stat.S_ISREG(os.fstat(fds[-1]).st_mode):
            raise ImageUnreadable(index, f"{image} is not a file")
        return
    fds.append(os.memfd_create("image", os.MFD_CLOEXEC))
    with os.fdopen(fds[-1], "wb", closefd=False) as file:
        if isinstance(image, bytes):
            file.write(image)
            return
        try:
            image.load()
        except OSError as error:
            if error.errno is None:  # Pillow's own: the file behind the image is broken
                raise ImageUnreadable(index, str(error)) from error
            raise
        image.save(file, "PNG" if image.mode in _PNG_MODES else "TIFF", compress_level=_FASTEST_COMPRESSION)
