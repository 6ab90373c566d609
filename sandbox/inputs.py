"""Input images and videos as file descriptors: the host hands bytes over and looks into none of them."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from sandbox.errors import ImageUnreadable, SandboxError

ImageInput = str | Path | bytes | Image.Image
"""A file, the bytes of a file, or an image in memory (stored losslessly)."""
VideoInput = str | Path | bytes
"""A file, or the bytes of one."""

_PNG_MODES = {"1", "L", "LA", "P", "RGB", "RGBA", "I;16"}
_FASTEST_COMPRESSION = 1
_VIDEO_SUFFIXES = {".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".gif", ".mpg", ".mpeg", ".ts", ".flv", ".wmv"}


def open_inputs(images: Sequence[ImageInput], videos: Sequence[VideoInput]) -> list[int]:
    """One readable descriptor per image, then one per video, for the caller to close.

    Raises ImageUnreadable, and SandboxError for a video.
    """
    fds: list[int] = []
    try:
        for index, image in enumerate(images):
            fds.append(_open(index, image))
        for index, video in enumerate(videos):
            fds.append(_open_video(index, video))
    except BaseException:
        close_all(fds)
        raise
    return fds


def suffix_of(video: VideoInput) -> str:
    """How its file is named in the sandbox. Of the host's name nothing else goes in: it may tell the answer."""
    suffix = "" if isinstance(video, bytes) else Path(video).suffix.lower()
    return suffix if suffix in _VIDEO_SUFFIXES else ".mp4"


def close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def _open(index: int, image: ImageInput) -> int:
    if isinstance(image, str | Path):
        return _open_file(index, image)
    fd = os.memfd_create("image", os.MFD_CLOEXEC)
    with os.fdopen(fd, "wb", closefd=False) as file:
        if isinstance(image, bytes):
            file.write(image)
        elif image.mode in _PNG_MODES:
            image.save(file, "PNG", compress_level=_FASTEST_COMPRESSION)
        else:
            image.save(file, "TIFF")
    return fd


def _open_video(index: int, video: VideoInput) -> int:
    try:
        return _open(index, video)
    except ImageUnreadable as error:
        raise SandboxError(f"video {index} cannot be opened: {error.reason}") from error


def _open_file(index: int, path: str | Path) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe must not make us wait
    except OSError as error:
        raise ImageUnreadable(index, str(error)) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ImageUnreadable(index, f"{path} is not a file")
    return fd
