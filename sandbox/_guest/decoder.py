"""The child that decodes a prompt's images: locked down like a session, because an image file is hostile input.

It writes raw pixels into memory files that the group made, and one line of JSON per image: what it wrote, or `reason`,
what is wrong with the image, or `exhausted`, what this machine lacked to decode it, which says nothing of the image.
"""

import io
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import cv2
import numpy as np
from PIL import Image, UnidentifiedImageError

from darkroom.sandbox._guest import lockdown
from darkroom.sandbox._guest.errors import is_out_of_memory
from darkroom.sandbox.limits import Limits

SHARED_MODES = {"L": 1, "RGB": 3, "RGBA": 4}
"""Modes whose pixels sessions share, with their bytes per pixel."""
MAX_SIDE = 65_535
MAX_REASON = 200
_SHARED_FORMATS = {"JPEG", "PNG"}
_LEAST_MEMORY_MB = 1024
_BYTES_PER_PIXEL = 16
"""Of Pillow's image, of its raw bytes and of OpenCV's array together."""
_PNG_BITS, _BITS = 24, 8
"""Where a PNG has its bits per sample, and how many OpenCV decodes as Pillow does."""
_STRIP_BYTES = 1 << 18
_PILLOW_OUT_OF_MEMORY = "out of memory error"


class Target(NamedTuple):
    """Where the child writes what it decoded from one image."""

    source_fd: int
    pixels_fd: int
    bgr_fd: int


def decode_in_child(cage: lockdown.Cage, targets: Sequence[Target], report_fd: int) -> NoReturn:
    try:
        fds = {fd for target in targets for fd in target}
        lockdown.lock_down(replace(cage, limits=_roomy(cage.limits)), {report_fd, *fds})
        lockdown.seal(cage)
        n_pixels = 0
        for target in targets:
            report, n_image_pixels = _decode_one(target, cage.limits, n_pixels)
            n_pixels += n_image_pixels
            _say(report_fd, report)
    except Exception as error:  # noqa: BLE001 - no image was at work: whatever it is, it is the machine's
        _say(report_fd, _exhausted(error))
    finally:
        os._exit(0)


def _roomy(limits: Limits) -> Limits:
    """What any image within `max_pixels` needs, so that the image alone decides whether it can be decoded."""
    return replace(
        limits,
        memory_mb=max(limits.memory_mb, _LEAST_MEMORY_MB, limits.max_pixels * _BYTES_PER_PIXEL >> 20),
        file_mb=max(limits.file_mb, (limits.max_pixels * 4 >> 20) + 1),
    )


def _decode_one(target: Target, limits: Limits, n_pixels: int) -> tuple[dict[str, Any], int]:
    """What to say of one image, and its pixels; `n_pixels` are those of the images before it."""
    Image.MAX_IMAGE_PIXELS = None  # the limits are ours, below
    try:
        data = _read_source(target.source_fd)
        with Image.open(io.BytesIO(data)) as image:
            width, height = image.size
            if width * height > limits.max_pixels or max(width, height) > MAX_SIDE:
                return {"reason": f"{width}x{height} pixels, at most {limits.max_pixels} pixels are allowed"}, 0
            if n_pixels + width * height > limits.input_pixels:
                return {"too_large": f"more than {limits.input_pixels} pixels (Limits.input_pixels)"}, 0
            image.load()
            found = {"format": image.format, "mode": image.mode, "width": width, "height": height}
            is_alike = _decodes_alike(image, data)
            if image.format in _SHARED_FORMATS and image.mode in SHARED_MODES:
                _write_pixels(image, target, with_bgr=is_alike)
        shape = [height, width, 3] if is_alike else _decode_bgr(data, target.bgr_fd)
        return {**found, "bgr_shape": shape}, width * height
    except UnidentifiedImageError:
        return {"reason": "it is in no format that Pillow knows"}, 0
    except Exception as error:  # noqa: BLE001 - whatever a broken file makes a decoder raise
        if _is_of_the_machine(error):
            return _exhausted(error), 0
        return {"reason": f"{type(error).__name__}: {error}"[:MAX_REASON]}, 0


def _is_of_the_machine(error: Exception) -> bool:
    """Decoders raise OSError as well, but only the kernel gives it a number."""
    if isinstance(error, OSError):
        return error.errno is not None or str(error).startswith(_PILLOW_OUT_OF_MEMORY)
    return is_out_of_memory(error)


def _exhausted(error: Exception) -> dict[str, Any]:
    reason = str(error) or "not enough memory"
    return {"exhausted": f"{type(error).__name__}: {reason}"[:MAX_REASON], "errno": getattr(error, "errno", None)}


def _say(fd: int, report: dict[str, Any]) -> None:
    os.write(fd, json.dumps(report).encode() + b"\n")


def _decodes_alike(image: Image.Image, data: bytes) -> bool:
    """Whether OpenCV would decode the same pixels: it turns an image by its EXIF data and reads 16 bits otherwise."""
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


def _read_source(fd: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        file.seek(0)  # the host may have written through the same descriptor
        return file.read()
