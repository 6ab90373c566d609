"""Decodes a prompt's images once, in a child that is locked down like a session: an image file is hostile input.

The child writes raw pixels into memory files that the group made, and a line of JSON per image: its shape, its defect
(`reason`), or what this machine lacked (`exhausted`). The group then seals the files against its own sessions.
"""

import errno
import io
import json
import math
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import cv2
import numpy as np
from PIL import Image, UnidentifiedImageError

from darkroom.sandbox._guest import lockdown
from darkroom.sandbox._guest.errors import is_out_of_memory
from darkroom.sandbox._guest.messages import IMAGE_FOLDER, DecodedImage
from darkroom.sandbox._guest.proc import Proc
from darkroom.sandbox._kernel import syscalls
from darkroom.sandbox.limits import Deadline, Limits, ProcessClock

SHARED_MODES = {"L": 1, "RGB": 3, "RGBA": 4}
"""Modes whose pixels sessions share, with their bytes per pixel."""
MAX_SIDE = 65_535
MAX_REASON = 200
_SHARED_FORMATS = {"JPEG", "PNG"}
_LEAST_MEMORY_MB = 1024
_BYTES_PER_PIXEL = 16
"""Of Pillow's image, of its raw bytes and of OpenCV's array together."""
_PNG_BITS = 24
"""Where a PNG has its bits per sample."""
_BITS = 8
"""Bits per sample that OpenCV decodes as Pillow does."""
_STRIP_BYTES = 1 << 18
_PILLOW_OUT_OF_MEMORY = "out of memory error"


class Target(NamedTuple):
    """Files into which the child writes the pixels of one image."""

    source_fd: int
    pixels_fd: int
    bgr_fd: int


def decode_in_child(cage: lockdown.Cage, targets: Sequence[Target], report_fd: int) -> NoReturn:
    try:
        limits = cage.limits
        fds = {fd for target in targets for fd in target}
        roomy = replace(  # the need of any image within `max_pixels`, so that the image alone decides
            limits,
            memory_mb=max(limits.memory_mb, _LEAST_MEMORY_MB, limits.max_pixels * _BYTES_PER_PIXEL >> 20),
            file_mb=max(limits.file_mb, (limits.max_pixels * 4 >> 20) + 1),
        )
        lockdown.lock_down(replace(cage, limits=roomy), {report_fd, *fds})
        lockdown.seal(cage)
        n_pixels = 0
        for target in targets:
            report, n_image_pixels = _decode_one(target, limits, n_pixels)
            n_pixels += n_image_pixels
            _say(report_fd, report)
    except Exception as error:  # noqa: BLE001 - no image was at work: whatever it is, it is the machine's
        _say(report_fd, exhausted(error))
    finally:
        os._exit(0)


def _decode_one(target: Target, limits: Limits, n_pixels: int) -> tuple[dict[str, Any], int]:
    """Decode one image: its report and its number of pixels; `n_pixels` are those of the images before it."""
    Image.MAX_IMAGE_PIXELS = None  # the limits are ours, below
    try:
        with open(target.source_fd, "rb", closefd=False) as file:
            file.seek(0)  # the host may have written through the same descriptor
            data = file.read()
        with Image.open(io.BytesIO(data)) as image:
            width, height = image.size
            if width * height > limits.max_pixels or max(width, height) > MAX_SIDE:
                return {"reason": f"{width}x{height} pixels, at most {limits.max_pixels} pixels are allowed"}, 0
            if n_pixels + width * height > limits.input_pixels:
                return {"too_large": f"more than {limits.input_pixels} pixels (Limits.input_pixels)"}, 0
            image.load()
            report = {"format": image.format, "mode": image.mode, "width": width, "height": height}
            is_alike = _decodes_alike(image, data)
            if image.format in _SHARED_FORMATS and image.mode in SHARED_MODES:
                _write_pixels(image, target, with_bgr=is_alike)
        shape = [height, width, 3] if is_alike else _decode_bgr(data, target.bgr_fd)
        return {**report, "bgr_shape": shape}, width * height
    except UnidentifiedImageError:
        return {"reason": "it is in no format that Pillow knows"}, 0
    except Exception as error:  # noqa: BLE001 - whatever a broken file makes a decoder raise
        # decoders raise OSError as well, but only the kernel gives it a number
        is_known = isinstance(error, OSError) and (error.errno or str(error).startswith(_PILLOW_OUT_OF_MEMORY))
        if is_known or is_out_of_memory(error):
            return exhausted(error), 0
        return {"reason": f"{type(error).__name__}: {error}"[:MAX_REASON]}, 0


def exhausted(error: Exception) -> dict[str, Any]:
    """Report a lack of this machine, with the number that the kernel gave it."""
    number = getattr(error, "errno", errno.ENOMEM if is_out_of_memory(error) else None)
    return {"exhausted": f"{type(error).__name__}: {str(error) or 'not enough memory'}"[:MAX_REASON], "errno": number}


def _say(fd: int, report: dict[str, Any]) -> None:
    os.write(fd, json.dumps(report).encode() + b"\n")


def _decodes_alike(image: Image.Image, data: bytes) -> bool:
    """Return whether OpenCV decodes the same: it turns an image by its EXIF data and reads 16 bits otherwise."""
    is_plain = image.mode == "RGB" and not image.info.keys() & {"exif", "transparency"}
    return is_plain and (image.format == "JPEG" or (image.format == "PNG" and data[_PNG_BITS] == _BITS))


def _write_pixels(image: Image.Image, target: Target, *, with_bgr: bool) -> None:
    """Strip by strip: to touch the memory of whole copies would take as long as decoding."""
    n_rows = max(1, _STRIP_BYTES // (image.width * SHARED_MODES[image.mode]))
    with open(target.pixels_fd, "wb", closefd=False) as pixels, open(target.bgr_fd, "wb", closefd=False) as bgr:
        for top in range(0, image.height, n_rows):
            strip = image.crop((0, top, image.width, min(top + n_rows, image.height))).tobytes()
            pixels.write(strip)
            if with_bgr:
                rgb = np.frombuffer(strip, np.uint8).reshape(-1, image.width, 3)
                bgr.write(cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR).data)


def _decode_bgr(data: bytes, fd: int) -> list[int]:
    pixels: np.ndarray[Any, Any] | None = None
    with suppress(cv2.error):
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if pixels is None:
        return []
    with open(fd, "wb", closefd=False) as file:
        file.write(pixels.data)
    return list(pixels.shape)


_SUFFIXES = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp", "GIF": "gif", "BMP": "bmp", "TIFF": "tif", "MPO": "jpg"}
_MAX_REPORT = 1 << 16
_SEALABLE = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
_ALL_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # seal, shrink, grow, write
_CRASHES = {
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS)
}
"""Signals that a decoder earns by what it does. SIGKILL comes from a kernel without memory."""


class RefusedInput(Exception):
    """Sent to the host instead of `ready`: `unreadable`, `too_large` or `exhausted`."""

    def __init__(self, **answer: Any) -> None:
        super().__init__(answer)
        self.answer = answer


@contextmanager
def inputs_folder(fds: list[int], *, namespaces: bool) -> Iterator[None]:
    """Open the folder of inputs: within, files can be stored there; afterwards nothing can change them."""
    if namespaces:
        n_bytes = sum(os.fstat(fd).st_size for fd in fds)
        syscalls.mount_tmpfs(IMAGE_FOLDER, f"size={n_bytes + (1 << 20)},mode=755,nr_inodes={len(fds) + 16}")
    yield
    if namespaces:
        syscalls.make_read_only(IMAGE_FOLDER, executable=False)


def decode_images(cage: lockdown.Cage, proc: Proc, fds: list[int], image_folder: str) -> list[DecodedImage]:
    """Decode, seal and store the images. Raises RefusedInput, and OSError."""
    targets = [Target(fd, *(os.memfd_create("pixels", _SEALABLE) for _ in range(2))) for fd in fds]
    reports, ended = _ask_child(cage, proc, targets) if targets else ([], 0)
    images = list[DecodedImage]()
    for index, target in enumerate(targets):
        if index == len(reports) and ended not in _CRASHES:
            raise RefusedInput(exhausted="the decoder was killed", errno=errno.ENOMEM)
        try:
            images.append(_image_of(json.loads(reports[index]), index, target, image_folder))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            raise RefusedInput(unreadable=index, reason="the decoder ended without an answer") from None
    return images


def store_videos(fds: list[int], suffixes: list[str], folder: str) -> list[str]:
    """Store the files as they are: the session that reads one decodes it. Answers with their paths."""
    paths = [f"{folder}/video_{index}{suffix}" for index, suffix in enumerate(suffixes)]
    for fd, path in zip(fds, paths, strict=True):
        _copy(fd, path)
    return paths


def _ask_child(cage: lockdown.Cage, proc: Proc, targets: list[Target]) -> tuple[list[bytes], int]:
    """Report of each image, as far as the child came, and the signal that ended it. Raises RefusedInput."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        decode_in_child(cage, targets, writing)
    os.close(writing)
    limits = cage.limits.for_decoding(len(targets))
    clock = ProcessClock(pid, proc.open_run_queue(pid))
    try:
        report = _read_all(reading, Deadline(clock, limits))
    except TimeoutError:
        raise RefusedInput(exhausted=f"decoding took more than {limits.seconds:.0f} s", errno=None) from None
    finally:
        os.kill(pid, signal.SIGKILL)  # too late to change how it ended, where it has
        ended = -os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        clock.close()
        os.close(reading)
    return report.splitlines(), ended


def _read_all(fd: int, rest: Callable[[], float]) -> bytes:
    """Read to the end, at most a report's bytes. Raises TimeoutError."""
    report = b""
    while len(report) <= _MAX_REPORT:
        # time is up only for what is not there yet, however late a busy machine lets this process look
        if select.select([fd], [], [], 0)[0] or select.select([fd], [], [], rest())[0]:
            if not (part := os.read(fd, _MAX_REPORT)):
                break
            report += part
    return report


def _image_of(report: Any, index: int, target: Target, image_folder: str) -> DecodedImage:
    """Seal and store an image. Only shapes and a short reason are taken from a child that an image may control."""
    if "exhausted" in report:
        number = report["errno"]
        raise RefusedInput(
            exhausted=str(report["exhausted"])[:MAX_REASON], errno=number if type(number) is int else None
        )
    if "too_large" in report:
        raise RefusedInput(too_large=str(report["too_large"])[:MAX_REASON])
    if "reason" in report:
        raise RefusedInput(unreadable=index, reason=str(report["reason"])[:MAX_REASON])
    mode, width, height, shape = str(report["mode"]), report["width"], report["height"], tuple(report["bgr_shape"])
    if not all(type(side) is int and 0 < side <= MAX_SIDE for side in (width, height, *shape)):
        raise ValueError("a side is out of range")
    path = f"{image_folder}/image_{index}.{_SUFFIXES.get(str(report['format']), 'img')}"
    _copy(target.source_fd, path)
    pixels_fd = _sealed(target.pixels_fd, width * height * SHARED_MODES.get(mode, 0))
    bgr_fd = _sealed(target.bgr_fd, math.prod(shape) if shape else 0)
    return DecodedImage(path, width, height, mode, pixels_fd, bgr_fd, shape)


def _sealed(fd: int, n_bytes: int) -> int:
    """The descriptor, or -1 if the file does not hold exactly what was announced."""
    if n_bytes == 0 or os.fstat(fd).st_size != n_bytes:
        os.close(fd)
        return -1
    syscalls.seal(fd, _ALL_SEALS)
    return fd


def _copy(source_fd: int, path: str) -> None:
    size, n_copied = os.fstat(source_fd).st_size, 0
    with open(path, "wb") as file:
        while sent := os.sendfile(file.fileno(), source_fd, n_copied, size - n_copied):
            n_copied += sent
    os.chmod(path, 0o444)
