"""Decodes a prompt's images once, in a child that is locked down like a session: an image file is hostile input.

The child writes raw pixels into memory files that the group made, and says what it wrote; the group then seals the
files, so that no session can change what another sees, and puts the originals where the code will find them.
"""

import fcntl
import io
import json
import math
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import cv2
import numpy as np
from PIL import Image, UnidentifiedImageError

from sandbox._guest import lockdown
from sandbox._guest.config import IMAGE_FOLDER, DecodedImage
from sandbox._kernel import syscalls

_SHARED_MODES = {"L": 1, "RGB": 3, "RGBA": 4}
"""Modes whose pixels sessions share, with their bytes per pixel."""
_SHARED_FORMATS = {"JPEG", "PNG"}
_SUFFIXES = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp", "GIF": "gif", "BMP": "bmp", "TIFF": "tif", "MPO": "jpg"}
_MAX_SIDE = 65_535
_MAX_REPORT = 1 << 16
_MAX_REASON = 200
_LEAST_MEMORY_MB = 1024
_SEALABLE = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
_ALL_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # seal, shrink, grow, write


class UnreadableImage(Exception):
    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason


class _Target(NamedTuple):
    """Where the child writes what it decoded from one image."""

    source_fd: int
    pixels_fd: int
    bgr_fd: int


class _Report(NamedTuple):
    """What the child says of one image."""

    format: str
    mode: str
    width: int
    height: int
    bgr_shape: tuple[int, ...]


@contextmanager
def inputs_folder(fds: list[int], *, namespaces: bool) -> Iterator[None]:
    """Within, what the descriptors hold can be stored where the code will find it; afterwards nothing can change it."""
    if namespaces:
        n_bytes = sum(os.fstat(fd).st_size for fd in fds)
        syscalls.mount_tmpfs(IMAGE_FOLDER, f"size={n_bytes + (1 << 20)},mode=755,nr_inodes={len(fds) + 16}")
    yield
    if namespaces:
        syscalls.make_read_only(IMAGE_FOLDER, executable=False)


def decode_images(cage: lockdown.Cage, fds: list[int], image_folder: str) -> list[DecodedImage]:
    """Decode, seal and store the images. Raises UnreadableImage."""
    targets = [_Target(fd, *(os.memfd_create("pixels", _SEALABLE) for _ in range(2))) for fd in fds]
    reports = _ask_child(cage, targets) if targets else []
    return [_store(i, target, reports[i], image_folder) for i, target in enumerate(targets)]


def store_videos(fds: list[int], suffixes: list[str], folder: str) -> list[str]:
    """Store the files as they are: the session that reads one decodes it. Answers with their paths."""
    paths = [f"{folder}/video_{index}{suffix}" for index, suffix in enumerate(suffixes)]
    for fd, path in zip(fds, paths, strict=True):
        _copy(fd, path)
    return paths


def _ask_child(cage: lockdown.Cage, targets: list[_Target]) -> list[_Report]:
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _decode_in_child(cage, targets, writing)
    os.close(writing)
    report = _read_all(reading, cage.limits.seconds * len(targets) + cage.limits.grace)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reading)
    return _checked_reports(report, len(targets))


def _read_all(fd: int, seconds: float) -> bytes:
    report = b""
    while select.select([fd], [], [], seconds)[0]:
        part = os.read(fd, _MAX_REPORT)
        report += part
        if not part or len(report) > _MAX_REPORT:
            break
    return report


def _checked_reports(report: bytes, n_images: int) -> list[_Report]:
    """The child may be under the control of an image: only shapes and a short reason are taken from it."""
    lines = report.splitlines()
    reports: list[_Report] = []
    for index in range(n_images):
        try:
            reports.append(_checked_report(json.loads(lines[index]), index))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            raise UnreadableImage(index, "the decoder ended without an answer") from None
    return reports


def _checked_report(report: Any, index: int) -> _Report:
    if "reason" in report:
        raise UnreadableImage(index, str(report["reason"])[:_MAX_REASON])
    width, height, shape = report["width"], report["height"], tuple(report["bgr_shape"])
    if not all(type(side) is int and 0 < side <= _MAX_SIDE for side in (width, height, *shape)):
        raise ValueError("a side is out of range")
    return _Report(str(report["format"]), str(report["mode"]), width, height, shape)


def _store(index: int, target: _Target, report: _Report, image_folder: str) -> DecodedImage:
    name, mode, width, height, shape = report
    path = f"{image_folder}/image_{index}.{_SUFFIXES.get(name, 'img')}"
    _copy(target.source_fd, path)
    pixels_fd = _sealed(target.pixels_fd, width * height * _SHARED_MODES.get(mode, 0))
    bgr_fd = _sealed(target.bgr_fd, math.prod(shape) if shape else 0)
    return DecodedImage(path, width, height, mode, pixels_fd, bgr_fd, shape)


def _sealed(fd: int, n_bytes: int) -> int:
    """The descriptor, or -1 if the file does not hold exactly what was announced."""
    if n_bytes == 0 or os.fstat(fd).st_size != n_bytes:
        os.close(fd)
        return -1
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _ALL_SEALS)
    return fd


def _copy(source_fd: int, path: str) -> None:
    size, done = os.fstat(source_fd).st_size, 0
    with open(path, "wb") as file:
        while done < size:
            sent = os.sendfile(file.fileno(), source_fd, done, size - done)
            if sent == 0:
                break
            done += sent
    os.chmod(path, 0o444)


# --- in the locked child


def _decode_in_child(cage: lockdown.Cage, targets: list[_Target], report_fd: int) -> NoReturn:
    try:
        limits = cage.limits
        roomy = replace(
            limits,
            memory_mb=max(limits.memory_mb, _LEAST_MEMORY_MB),
            file_mb=max(limits.file_mb, limits.max_pixels * 4 >> 20),
        )
        fds = {fd for target in targets for fd in (target.source_fd, target.pixels_fd, target.bgr_fd)}
        lockdown.lock_down(replace(cage, limits=roomy), {report_fd, *fds})
        lockdown.seal(cage)
        for target in targets:
            os.write(report_fd, json.dumps(_decode_one(target, limits.max_pixels)).encode() + b"\n")
    finally:
        os._exit(0)


def _decode_one(target: _Target, max_pixels: int) -> dict[str, Any]:
    data = _read_source(target.source_fd)
    Image.MAX_IMAGE_PIXELS = None  # the limit is ours, below
    try:
        with Image.open(io.BytesIO(data)) as image:
            width, height = image.size
            if width * height > max_pixels or max(width, height) > _MAX_SIDE:
                return {"reason": f"{width}x{height} pixels, at most {max_pixels} pixels are allowed"}
            image.load()
            if image.format in _SHARED_FORMATS and image.mode in _SHARED_MODES:
                _write_all(target.pixels_fd, image.tobytes())
            found = {"format": image.format, "mode": image.mode, "width": width, "height": height}
        return {**found, "bgr_shape": _decode_bgr(data, target.bgr_fd)}
    except UnidentifiedImageError:
        return {"reason": "it is in no format that Pillow knows"}
    except Exception as error:  # noqa: BLE001 - whatever a broken file makes a decoder raise
        return {"reason": f"{type(error).__name__}: {error}"[:_MAX_REASON]}


def _decode_bgr(data: bytes, fd: int) -> list[int]:
    pixels: np.ndarray[Any, Any] | None = None
    with suppress(cv2.error):
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if pixels is None:
        return []
    _write_all(fd, pixels.data)
    return list(pixels.shape)


def _read_source(fd: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        file.seek(0)  # the host may have written through the same descriptor
        return file.read()


def _write_all(fd: int, data: bytes | memoryview) -> None:
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
