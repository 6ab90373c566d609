"""The agent stores every image as any store does, plain PNGs without decoding them."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.storage import images
from darkroom.pipelines.storage.images import ImageStore
from darkroom.train.agent.answers import AgentImages, plain_png
from tests.image_files import encoded

NOISE = np.random.default_rng(0).integers(0, 255, (12, 9, 4), dtype=np.uint8)
RGB = Image.fromarray(NOISE).convert("RGB")
_END_MARK = 12
"""Bytes of the last chunk, which holds nothing."""


def turned_by_exif():
    turned = Image.Exif()
    turned[0x0112] = 6
    return encoded(RGB, exif=turned)


def turned_by_xmp():
    words = PngImagePlugin.PngInfo()
    words.add_text("XML:com.adobe.xmp", "<tiff:Orientation>6</tiff:Orientation>")
    return encoded(RGB, pnginfo=words)


def half_transparent():
    image = Image.new("RGBA", (30, 20), (200, 30, 10, 255))
    image.paste((0, 0, 0, 0), (0, 0, 15, 20))
    return encoded(image)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def of_sixteen_bits() -> bytes:
    """Twelve bits in use, which stores scale."""
    rows = b"".join(b"\0" + struct.pack(">27H", *(row * 27 + n for n in range(27))) for row in range(12))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 9, 12, 16, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PLAIN = {
    "RGB": encoded(RGB),
    "grey": encoded(RGB.convert("L")),
    "resolution": encoded(RGB, dpi=(72, 72)),
    "profile": encoded(RGB, icc_profile=b"p" * 200),
    "more bytes": encoded(RGB) + b"after the end",
}
OTHERS = {
    "palette": encoded(RGB.convert("P")),
    "one bit": encoded(RGB.convert("1")),
    "alpha": encoded(Image.fromarray(NOISE)),
    "half transparent": half_transparent(),
    "grey with alpha": encoded(RGB.convert("LA")),
    "16 bits of grey": encoded(Image.fromarray(NOISE[..., 0].astype(np.uint16) * 256)),
    "16 bits": of_sixteen_bits(),
    "one colour transparent": encoded(RGB, transparency=(1, 2, 3)),
    "EXIF": turned_by_exif(),
    "XMP": turned_by_xmp(),
    "JPEG": encoded(RGB, "JPEG"),
}


@pytest.fixture
def store(tmp_path):
    return ImageStore(str(tmp_path))


@pytest.fixture
def n_decoded(monkeypatch):
    decoded, probe = [], images.probe

    def counted(data, **options):
        decoded.append(data)
        return probe(data, **options)

    monkeypatch.setattr(images, "probe", counted)
    return lambda: len(decoded)


@pytest.mark.parametrize(
    ("data", "n_times"), [*((png, 0) for png in PLAIN.values()), *((o, 1) for o in OTHERS.values())]
)
def test_the_agent_stores_what_every_store_stores_and_decodes_no_plain_png(store, n_decoded, data, n_times):
    agents = AgentImages(store.url)
    image = agents.ingest(data)
    assert n_decoded() == n_times
    assert image == store.ingest(data)
    assert agents.read(image) == store.read(image)


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG\r\n\x1a\n", b"no image", encoded(RGB, save_all=True, append_images=[RGB.rotate(180)])]
)
def test_other_files_are_rejected_as_by_every_store(store, data):
    with pytest.raises(RowError) as of_agent:
        AgentImages(store.url).ingest(data)
    with pytest.raises(RowError) as of_store:
        store.ingest(data)
    assert str(of_agent.value) == str(of_store.value)


def test_a_plain_png_above_the_limit_is_rejected(store):
    with pytest.raises(RowError, match="the limit is 100"):
        AgentImages(store.url).ingest(encoded(RGB), max_pixels=100)


def test_no_byte_before_the_end_mark_of_a_plain_png_can_be_lost_or_changed():
    png = encoded(RGB)
    for n_bytes in range(len(png) - _END_MARK):
        assert plain_png(png[:n_bytes]) is None, n_bytes
        changed = bytearray(png)
        changed[n_bytes] ^= 0x10
        assert plain_png(bytes(changed)) is None, n_bytes


def test_chunks_out_of_order_and_empty_headers_are_not_plain():
    size = struct.pack(">IIBBBBB", 9, 12, 8, 2, 0, 0, 0)
    head, pixels, end = chunk(b"IHDR", size), chunk(b"IDAT", b"x"), chunk(b"IEND", b"")
    mark = b"\x89PNG\r\n\x1a\n"
    assert plain_png(mark + head + pixels + end) is not None
    for chunks in (
        head + end,
        chunk(b"IHDR", b"") + pixels + end,
        chunk(b"IHDR", bytes(13)) + pixels + end,
        head + struct.pack(">I", 2**32 - 1) + b"IDAT",
    ):
        assert plain_png(mark + chunks) is None
