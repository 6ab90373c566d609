"""Image and video files that are nearly right: real ones with bytes changed, lost, doubled or moved."""

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import cv2
import numpy as np
from PIL import Image

from tests.image_files import encoded

_IMAGES: dict[str, list[dict[str, Any]]] = {
    "png": [{}, {"optimize": True}],
    "jpeg": [{"quality": 80}, {"progressive": True}],
    "webp": [{"lossless": True}, {"quality": 50}],
    "tiff": [{}, {"compression": "tiff_lzw"}, {"compression": "tiff_deflate"}, {"compression": "jpeg"}],
    "gif": [{}, {"save_all": True, "append_images": [Image.new("RGB", (40, 30), "red")], "loop": 0}],
}
KINDS = (*_IMAGES, "mp4")
_EXTREMES = (b"\0", b"\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0")


def random_file(random: Random, kind: str) -> bytes:
    data = bytearray(random.choice(_originals(kind)))
    for _ in range(random.choice((0, 1, 1, 2, 3, 8, 30))):
        random.choice(_MUTATIONS)(random, data)
    return bytes(data)


@cache
def _originals(kind: str) -> list[bytes]:
    if kind == "mp4":
        return [_video()]
    return [_encoded(kind, mode, options) for mode in ("RGB", "L") for options in _IMAGES[kind]]


def _encoded(kind: str, mode: str, options: dict[str, Any]) -> bytes:
    rows, columns = np.mgrid[0:30, 0:40]
    image = Image.fromarray(np.stack([rows * 8, columns * 6, rows + columns], axis=-1).astype(np.uint8))
    return encoded(image.convert(mode), kind, **options)


def _video() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/video.mp4"
        writer = cv2.VideoWriter(path, cv2.VideoWriter.fourcc(*"mp4v"), 5, (64, 48))
        for n in range(8):
            writer.write(np.full((48, 64, 3), n * 30, np.uint8))
        writer.release()
        return Path(path).read_bytes()


def _position(random: Random, data: bytearray) -> int:
    """Half of them in the first bytes, where the sizes and tables are."""
    return random.randrange(min(len(data), random.choice((64, 1 << 30))) or 1)


def _flip(random: Random, data: bytearray) -> None:
    start = _position(random, data)
    data[start : start + 1] = bytes([random.randrange(256)])


def _overwrite(random: Random, data: bytearray) -> None:
    extreme, start = random.choice(_EXTREMES), _position(random, data)
    data[start : start + len(extreme)] = extreme


def _cut(random: Random, data: bytearray) -> None:
    start = _position(random, data)
    del data[start : start + random.choice((1, 4, 50, 1 << 30))]


def _double(random: Random, data: bytearray) -> None:
    start = _position(random, data)
    data[start:start] = data[start : start + random.choice((1, 4, 100))]


def _move(random: Random, data: bytearray) -> None:
    start, end = _position(random, data), _position(random, data)
    part = data[start : start + 20]
    data[end : end + 20] = part


_MUTATIONS: tuple[Callable[[Random, bytearray], None], ...] = (_flip, _flip, _overwrite, _cut, _double, _move)
