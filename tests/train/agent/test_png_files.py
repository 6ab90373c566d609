"""Plain PNGs are recognised by their chunks; every other file is left to the decoder."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from darkroom.train.agent.answers import plain_png
from tests.image_files import encoded

NOISE = np.random.default_rng(0).integers(0, 255, (12, 9, 4), dtype=np.uint8)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("options", [{}, {"dpi": (72, 72)}, {"icc_profile": b"p" * 200}])
def test_size_and_mode_are_pillows(mode, options):
    png = encoded(Image.fromarray(NOISE).convert(mode), **options)
    assert plain_png(png) == (9, 12, mode)
    assert plain_png(png + b"after the end") == (9, 12, mode)


@pytest.mark.parametrize("mode", ["1", "P", "LA", "RGBA", "I;16"])
def test_what_would_be_converted_is_not_plain(mode):
    image = Image.fromarray(NOISE)
    assert (
        plain_png(encoded(image.convert("L").convert(mode) if mode not in ("P", "RGBA") else image.convert(mode)))
        is None
    )


def test_what_turns_frames_or_sees_through_an_image_is_not_plain():
    image = Image.fromarray(NOISE).convert("RGB")
    turned = Image.Exif()
    turned[0x0112] = 6
    words = PngImagePlugin.PngInfo()
    words.add_text("XML:com.adobe.xmp", "<tiff:Orientation>6</tiff:Orientation>")
    frames = [image.rotate(90, expand=False)]
    for options in ({"exif": turned}, {"pnginfo": words}, {"transparency": (1, 2, 3)}):
        assert plain_png(encoded(image, **options)) is None
    assert plain_png(encoded(image, save_all=True, append_images=frames)) is None


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", encoded(Image.new("RGB", (9, 9)), "JPEG")])
def test_other_files_are_not_plain(data):
    assert plain_png(data) is None


def test_no_byte_of_a_plain_png_can_be_lost_or_changed():
    png = encoded(Image.fromarray(NOISE).convert("RGB"))
    assert [n for n in range(len(png)) if plain_png(png[:n])] == []
    for place in range(len(png)):
        changed = bytearray(png)
        changed[place] ^= 0x10
        assert plain_png(bytes(changed)) is None, place


def test_chunks_out_of_order_and_empty_headers_are_not_plain():
    size = struct.pack(">IIBBBBB", 9, 12, 8, 2, 0, 0, 0)
    head, pixels, end = chunk(b"IHDR", size), chunk(b"IDAT", b"x"), chunk(b"IEND", b"")
    mark = b"\x89PNG\r\n\x1a\n"
    assert plain_png(mark + head + pixels + end) == (9, 12, "RGB")
    for chunks in (
        pixels + head + end,
        head + end,
        head + head + pixels + end,
        chunk(b"IHDR", b"") + pixels + end,
        chunk(b"IHDR", bytes(13)) + pixels + end,
        head + struct.pack(">I", 2**32 - 1) + b"IDAT",
    ):
        assert plain_png(mark + chunks) is None
