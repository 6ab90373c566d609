"""What an image file really is, the ugly ones first. Warnings are errors here: none of Pillow's may escape."""

from __future__ import annotations

import base64
import re
import resource
from contextlib import suppress

import cv2
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image, TiffImagePlugin

from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage import media_validation
from darkroom.pipelines.storage.media_validation import PLAIN_MODES, decode, eight_bit, probe


def reason_of(data: bytes) -> Reason:
    with pytest.raises(RowError) as caught:
        probe(data)
    return caught.value.reason


def test_a_file_of_0_bytes_is_empty():
    assert reason_of(b"") is Reason.EMPTY_IMAGE


@pytest.mark.parametrize(
    "data", [b"\0", b"this is text\n" * 50, b"\x89PNG\r\n\x1a\n", b"<svg/>", b"%!PS-Adobe-3.0 EPSF"]
)
def test_what_is_no_image_is_unreadable(data):
    assert reason_of(data) is Reason.UNREADABLE_IMAGE


def test_formats_that_pillow_hands_to_other_programs_are_not_opened(make_image, encoded):
    assert encoded(make_image(), "EPS").startswith(b"%!PS")
    assert reason_of(encoded(make_image(), "EPS")) is Reason.UNREADABLE_IMAGE


@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "BMP"])
def test_a_file_cut_in_the_middle_is_truncated(make_image, encoded, format):
    data = encoded(make_image(), format)
    assert reason_of(data[: len(data) // 2]) is Reason.TRUNCATED_IMAGE


def test_a_webp_cut_in_the_middle_is_unreadable(make_image, encoded):
    data = encoded(make_image(), "WEBP")
    assert reason_of(data[: len(data) // 2]) is Reason.UNREADABLE_IMAGE


def test_a_jpeg_without_its_last_byte_is_truncated(make_image, encoded):
    image = make_image()
    data = encoded(image, "JPEG")
    assert reason_of(data[:-1]) is Reason.TRUNCATED_IMAGE


def test_a_png_that_lacks_only_its_end_mark_holds_every_pixel(make_image, encoded):
    image = make_image()
    data = encoded(image)[:-12]
    assert probe(data).plain is None
    assert decode(data).tobytes() == image.tobytes()


def test_pixels_that_do_not_match_their_checksum_are_unreadable(make_image, encoded):
    data = bytearray(encoded(make_image()))
    data[len(data) // 2] ^= 0xFF
    assert reason_of(bytes(data)) is Reason.UNREADABLE_IMAGE


@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "BMP", "GIF", "WEBP", "AVIF", "JPEG2000", "PPM"])
def test_whatever_happens_to_a_file_it_is_sound_or_a_typed_error(make_image, encoded, format):
    whole = encoded(make_image(mode="P" if format == "GIF" else "RGB"), format)

    @given(st.integers(0, len(whole)), st.lists(st.tuples(st.integers(0, len(whole) - 1), st.binary(min_size=1))))
    @settings(max_examples=40)
    def check(end: int, edits: list[tuple[int, bytes]]) -> None:
        data = bytearray(whole)
        for place, junk in edits:
            data[place : place + len(junk)] = junk
        with suppress(RowError):
            assert probe(bytes(data[:end] if end else data)).image.width

    check()


@pytest.mark.parametrize("size", [(20_000, 10_000), (11_000, 10_000), (60_000, 60_000)])
def test_a_header_that_promises_too_many_pixels_is_refused_without_memory(png_bomb, size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert reason_of(png_bomb(*size)) is Reason.TOO_LARGE_IMAGE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_file_that_really_holds_200_megapixels_is_refused_without_memory(encoded):
    data = encoded(Image.new("1", (20_000, 10_000)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert reason_of(data) is Reason.TOO_LARGE_IMAGE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_the_limit_is_the_callers(make_image, encoded):
    with pytest.raises(RowError, match="96x64 = 6,144 pixels, the limit is 6,143"):
        probe(encoded(make_image()), max_pixels=6143)
    assert probe(encoded(make_image()), max_pixels=6144).image.width == 96


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "TIFF", "AVIF"])
def test_more_than_one_frame_is_animated(make_image, encoded, format):
    data = encoded(make_image(0), format, save_all=True, append_images=[make_image(1), make_image(2)])
    assert reason_of(data) is Reason.ANIMATED_IMAGE


def test_a_photograph_with_a_depth_map_beside_it_is_no_animation(make_image, encoded):
    found = probe(encoded(make_image(0), "MPO", save_all=True, append_images=[make_image(1)]))
    assert (found.image.format, found.plain) == ("MPO", None)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_plain_images_stay_as_they_are(make_image, encoded, format, mode):
    found = probe(encoded(make_image(mode=mode), format))
    assert (found.plain, found.made_by) == (None, "")


@pytest.mark.parametrize("format", ["TIFF", "BMP", "GIF", "AVIF", "JPEG2000"])
def test_formats_that_few_endpoints_take_are_derived(make_image, encoded, format):
    found = probe(encoded(make_image(), format))
    assert found.plain is not None
    assert found.plain.mode in PLAIN_MODES
    assert f"format {format}" in found.made_by


@pytest.mark.parametrize(("format", "dtype"), [("PNG", "<u2"), ("TIFF", "<u2"), ("TIFF", ">u2")])
def test_16_bit_gray_is_scaled_by_257(encoded, format, dtype):
    levels = np.array([[0, 257, 128 * 257 + 100, 65535]], dtype)
    plain = probe(encoded(Image.fromarray(levels), format)).plain
    assert plain is not None
    assert plain.mode == "L"
    assert list(plain.tobytes()) == [0, 1, 128, 255]


def test_float_images_are_scaled_from_their_own_range(encoded):
    plain = probe(encoded(Image.fromarray(np.array([[-1.0, 0.0, 1.0]], np.float32)), "TIFF")).plain
    assert plain is not None
    assert list(plain.tobytes()) == [0, 128, 255]


@pytest.mark.parametrize("values", [[np.nan, np.nan], [np.inf, -np.inf], [5.0, 5.0]])
def test_float_images_without_a_range_show_nothing(encoded, values):
    assert reason_of(encoded(Image.fromarray(np.array([values], np.float32)), "TIFF")) is Reason.EMPTY_IMAGE


def test_infinite_and_missing_values_are_the_ends_of_the_range(encoded):
    values = np.array([[np.nan, 0.0, 1.0, np.inf, -np.inf]], np.float32)
    plain = probe(encoded(Image.fromarray(values), "TIFF")).plain
    assert plain is not None
    assert list(plain.tobytes()) == [0, 0, 255, 255, 0]


def test_a_cmyk_jpeg_becomes_rgb(make_image, encoded):
    found = probe(encoded(make_image(mode="CMYK"), "JPEG", quality=95))
    assert (found.image.mode, found.made_by) == ("CMYK", "mode CMYK")
    assert found.plain is not None
    assert found.plain.mode == "RGB"
    difference = np.asarray(found.plain, np.int16) - np.asarray(make_image(), np.int16)
    assert np.abs(difference).mean() < 6


def test_a_palette_becomes_rgb(make_image, encoded):
    plain = probe(encoded(make_image(mode="P"))).plain
    assert plain is not None
    assert plain.mode == "RGB"


DRAWN_ON = [("RGBA", "PNG"), ("RGBA", "WEBP"), ("LA", "PNG"), ("LA", "TIFF"), ("P", "PNG"), ("P", "GIF")]


def drawing(mode: str, ink: int = 0) -> Image.Image:
    """A square of ink on a ground that is transparent, and black if one does not see that."""
    if mode == "P":
        image = Image.new("P", (32, 24))
        image.putpalette([0, 0, 0, ink, ink, ink])
        image.info["transparency"] = 0
        image.paste(1, (8, 8, 16, 16))
        return image
    image = Image.new("LA", (32, 24))
    image.paste((ink, 255), (8, 8, 16, 16))
    return image.convert(mode)


@pytest.mark.parametrize(("mode", "format"), DRAWN_ON)
def test_transparent_images_are_flattened_on_white(encoded, mode, format):
    options = {"lossless": True} if format == "WEBP" else {}
    found = probe(encoded(drawing(mode), format, **options))
    assert found.plain is not None
    assert "flattened on white" in found.made_by
    assert found.plain.mode == "RGB"
    assert (found.plain.getpixel((0, 0)), found.plain.getpixel((9, 9))) == ((255, 255, 255), (0, 0, 0))


def test_white_on_a_transparent_ground_shows_nothing(encoded):
    assert reason_of(encoded(drawing("RGBA", ink=255))) is Reason.EMPTY_IMAGE


def test_a_colour_that_stands_for_transparent_is_flattened(make_image, encoded):
    image = make_image()
    image.paste((1, 2, 3), (0, 0, 8, 8))
    plain = probe(encoded(image, transparency=(1, 2, 3))).plain
    assert plain is not None
    assert plain.getpixel((0, 0)) == (255, 255, 255)


def test_an_opaque_image_with_alpha_stays(make_image, encoded):
    assert probe(encoded(make_image().convert("RGBA"))).plain is None


def test_one_bit_becomes_gray(make_image, encoded):
    plain = probe(encoded(make_image(mode="1"))).plain
    assert plain is not None
    assert plain.mode == "L"
    assert set(plain.tobytes()) == {0, 255}


def test_opaque_gray_with_alpha_becomes_rgb(make_image, encoded):
    plain = probe(encoded(make_image(mode="LA"))).plain
    assert plain is not None
    assert plain.mode == "RGB"


@pytest.mark.parametrize(("bits", "step"), [(8, "8"), (9, "10"), (12, "12"), (14, "14"), (16, None)])
@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_16_bit_gray_is_scaled_from_the_bits_in_use(encoded, format, bits, step):
    full = 2 ** int(step or bits) - 1
    ramp = np.linspace(0, full, 256).round().astype(np.uint16)[None]
    found = probe(encoded(Image.fromarray(ramp), format))
    assert found.plain is not None
    assert np.abs(np.asarray(found.plain, int)[0] - np.arange(256)).max() <= 1
    assert (f"scaled from {step} bits" in found.made_by) == (step is not None)


@pytest.mark.parametrize("suffix", [".png", ".tiff"])
@pytest.mark.parametrize("n_channels", [3, 4])
def test_16_bit_colours_are_scaled_from_the_bits_in_use(suffix, n_channels):
    ramp = np.linspace(0, 4095, 256).round().astype(np.uint16)
    values = np.zeros((4, 256, n_channels), np.uint16)
    values[..., 2] = ramp  # of OpenCV's blue, green, red
    values[..., 3:] = 65535
    found = probe(cv2.imencode(suffix, values)[1].tobytes())
    assert found.plain is not None
    assert "scaled from 12 bits" in found.made_by
    pixels = np.asarray(found.plain.convert("RGB"), int)
    assert np.abs(pixels[0, :, 0] - np.arange(256)).max() <= 1
    assert not pixels[..., 1:].any()
    full = cv2.imencode(suffix, values * np.uint16(16))[1].tobytes()
    assert "scaled" not in probe(full).made_by


def test_values_that_8_bits_cannot_show_are_refused(encoded):
    depth = np.linspace(0.3, 9.7, 500, dtype=np.float32)
    assert probe(encoded(Image.fromarray(depth[None]), "TIFF")).made_by == "mode F;scaled from 0.3 to 9.7;format TIFF"
    depth[-1] = 1e10  # what a sensor writes where it sees nothing
    with pytest.raises(RowError, match=r"98 % lie between .*, too near for 256 levels"):
        probe(encoded(Image.fromarray(depth[None]), "TIFF"))


@pytest.mark.parametrize(
    "mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "LAB", "I", "F", "I;16"]
)
def test_every_mode_has_an_8_bit_form(mode):
    assert eight_bit(Image.new(mode, (3, 2))).mode in PLAIN_MODES


@pytest.mark.parametrize("orientation", range(2, 9))
def test_every_exif_orientation_is_applied(make_image, encoded, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = probe(encoded(make_image(), exif=exif))
    assert found.made_by == "exif_orientation"
    assert found.plain is not None
    assert found.plain.size == ((64, 96) if orientation >= 5 else (96, 64))
    assert not found.plain.getexif().get(0x0112)


@pytest.mark.parametrize("orientation", [0, 1])
def test_an_upright_image_with_exif_stays(make_image, encoded, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert probe(encoded(make_image(), "JPEG", exif=exif)).plain is None


def test_a_broken_exif_block_does_no_harm(make_image, encoded):
    assert probe(encoded(make_image(), "JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff\x12\x01")).image.width == 96


HEIC = base64.b64decode(
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAVZtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAACJpbG9jAAAA"
    "AERAAAEAAQAAAAABegABAAAAAAAAABsAAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAABAABodmMxAAAAAA5waXRtAAAAAAABAAAA1mlwcnAAAAC3"
    "aXBjbwAAAHhodmNDAQNwAAAAkAAAAAAAHvAA/P34+AAADwNgAAEAGEABDAH//wNwAAADAJAAAAMAAAMAHroCQGEAAQArQgEBA3AAAAMAkAAAAwAA"
    "AwAeoDCBBZbqSSmubgIaDAgAAAMAyAAAAwAIQGIAAQAHRAHBcrAiQAAAABNjb2xybmNseAABAA0ABoAAAAAUaXNwZQAAAAAAAABgAAAAQAAAABBw"
    "aXhpAAAAAAMICAgAAAAXaXBtYQAAAAAAAAABAAEEgQIDBAAAACNtZGF0AAAAFygBrxmA93yFN//vj4R6nhv8iBXitCs8"
)
"""96x64, of one colour; (40, 120, 200)."""


def test_a_photograph_of_an_iphone_is_read_with_its_extra():
    probed = probe(HEIC)
    assert (probed.image.size, probed.image.format, probed.made_by) == ((96, 64), "HEIF", "format HEIF")
    assert probed.plain is not None
    assert np.abs(np.asarray(probed.plain).mean((0, 1)) - (40, 120, 200)).max() < 4


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\x0a\xfa\x7f", "are JPEG XL: convert it"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "are JPEG XL"),
        (b'<?xml version="1.0"?>\n<!-- a -->\n<svg xmlns="http://www.w3.org/2000/svg"/>', "are SVG: draw it as PNG"),
        (b"8BPS\0\1", "are Photoshop's format: convert it"),
        (b"\0\0\0\x18ftypcrx \0\0\0\1", "are a camera's raw format: develop it"),
        (b"II*\0\x10\0\0\0CR\2\0", "raw format"),
        (b"%PDF-1.7", "are PDF: draw its pages"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer: `git lfs pull`"),
        (b"\n<!DOCTYPE html><html>", "an HTML page: download the image again"),
        (b"anything else", "are no image in a known format"),
    ],
)
def test_a_file_that_is_no_image_says_what_it_is_and_what_to_do(data, said):
    with pytest.raises(RowError, match=re.escape(said)) as caught:
        probe(data)
    assert caught.value.reason is Reason.UNREADABLE_IMAGE


def test_heic_without_its_extra_names_it(monkeypatch):
    monkeypatch.setattr(media_validation, "_formats", lambda: media_validation.FORMATS)
    with pytest.raises(RowError, match=r"are HEIC: pip install 'darkroom-toolkit\[heic\]', or convert it"):
        probe(HEIC)


@pytest.mark.parametrize("tags", [{254: 1}, {50706: b"\1\4\0\0"}])
def test_the_preview_of_a_raw_photograph_is_not_taken_for_it(make_image, encoded, tags):
    info = TiffImagePlugin.ImageFileDirectory_v2()
    for tag, value in tags.items():
        info[tag] = value
    data = encoded(make_image(), "TIFF", tiffinfo=info)
    with pytest.raises(RowError, match="a camera's raw format, of which Pillow reads the small preview"):
        probe(data)
