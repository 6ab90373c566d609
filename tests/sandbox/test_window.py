"""The memory through which a session's pixels reach the host."""

import mmap
import os
from collections.abc import Iterator

import pytest

from darkroom.sandbox.process import Window

N_BYTES = 24 << 20


@pytest.fixture
def window() -> Iterator[Window]:
    window = Window(N_BYTES)
    yield window
    window.close()


def put(window: Window, pixels: bytes) -> None:
    """As the session does."""
    with mmap.mmap(window.fd, N_BYTES) as memory:
        memory[: len(pixels)] = pixels


def test_images_lie_one_after_the_other(window: Window) -> None:
    put(window, bytes([1, 2, 3]) * 2 + bytes([4, 5, 6]))
    images = window.read([(2, 1), (1, 1)])
    assert [image.size for image in images] == [(2, 1), (1, 1)]
    assert [image.getpixel((0, 0)) for image in images] == [(1, 2, 3), (4, 5, 6)]


def test_an_image_keeps_its_pixels_when_the_next_reply_comes(window: Window) -> None:
    put(window, b"\x01\x02\x03")
    first = window.read([(1, 1)])[0]
    put(window, b"\x07\x08\x09")
    assert (first.getpixel((0, 0)), window.read([(1, 1)])[0].getpixel((0, 0))) == ((1, 2, 3), (7, 8, 9))


def test_the_memory_of_a_large_reply_is_given_back(window: Window) -> None:
    put(window, b"\xff" * N_BYTES)
    assert window.read([(3072, 2048)])[0].getpixel((9, 9)) == (255, 255, 255)
    assert os.fstat(window.fd).st_blocks == 0


def test_neither_side_can_change_its_size(window: Window) -> None:
    for n_bytes in (0, 2 * N_BYTES):
        with pytest.raises(PermissionError):
            os.ftruncate(window.fd, n_bytes)
