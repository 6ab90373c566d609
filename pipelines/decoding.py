"""What an image file really is: probed before it is trusted, and brought into a form that every reader shows alike.

Accepted as they are: single-frame JPEG, PNG and WebP in modes L, RGB and RGBA whose orientation is already upright.
Derived (a PNG whose parent is the original): other formats (TIFF, GIF, AVIF, BMP, …: few endpoints take them), EXIF
orientation applied, palette, CMYK, 1-bit, 16-bit and float images brought to 8-bit RGB, RGBA or L. Refused with a
reason: empty, unreadable (also every format that is not in ``FORMATS``: Pillow would run Ghostscript on an EPS file),
truncated, animated, larger than ``MAX_PIXELS``. A PNG or GIF that lacks only its end mark holds
every pixel and is accepted.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

import sandbox
from pipelines.rejects import Reason, RowFault

MAX_PIXELS = sandbox.Limits.max_pixels
"""What the sandbox can open: a larger image would be paid for and then fail there."""

PLAIN_MODES = frozenset({"L", "RGB", "RGBA"})
FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")  # JPEG includes MPO
PLAIN_FORMATS = frozenset({"JPEG", "MPO", "PNG", "WEBP"})
_EXIF_ORIENTATION = 0x0112
_CUT_OFF = re.compile(r"truncated|incomplete|unexpected end", re.IGNORECASE)
_SIXTEEN_TO_EIGHT = np.rint(np.arange(65536) / 257).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Probed:
    """An image that can be decoded. ``plain`` holds the pixels to store as a derived image, if any are needed."""

    width: int
    height: int
    mode: str
    format: str
    plain: Image.Image | None
    made_by: str


def probe(data: bytes, *, max_pixels: int = MAX_PIXELS) -> Probed:
    """Decodes ``data`` fully. Raises ``RowFault`` with the reason when it is not one sound image."""
    if not data:
        raise RowFault(Reason.EMPTY_IMAGE, "the image file has 0 bytes")
    with _quiet():
        try:
            image = Image.open(io.BytesIO(data), formats=FORMATS)
            _check_header(image, max_pixels)
            image.load()
            plain, steps = _plain(image)
        except RowFault:
            raise
        except Exception as fault:  # whatever a broken file makes a decoder raise
            raise _fault(fault, data) from fault
    return Probed(image.width, image.height, image.mode, image.format or "", plain, ";".join(steps))


def decode(data: bytes) -> Image.Image:
    """The pixels of an image that was probed before."""
    with _quiet():
        image = Image.open(io.BytesIO(data), formats=FORMATS)
        image.load()
    return image


@contextmanager
def _quiet() -> Iterator[None]:
    """Pillow warns of odd metadata and of large sizes: the first harms nobody, the second is checked here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _fault(fault: Exception, data: bytes) -> RowFault:
    if isinstance(fault, Image.DecompressionBombError):
        return RowFault(Reason.TOO_LARGE_IMAGE, str(fault))
    if isinstance(fault, UnidentifiedImageError):
        return RowFault(Reason.UNREADABLE_IMAGE, f"{len(data)} bytes are no image in a known format")
    reason = Reason.TRUNCATED_IMAGE if _CUT_OFF.search(str(fault)) else Reason.UNREADABLE_IMAGE
    return RowFault(reason, f"{len(data)} bytes: {type(fault).__name__}: {fault}")


def _check_header(image: Image.Image, max_pixels: int) -> None:
    pixels = image.width * image.height
    if pixels > max_pixels:
        raise RowFault(
            Reason.TOO_LARGE_IMAGE,
            f"{image.width}x{image.height} = {pixels:,} pixels, the limit is {max_pixels:,}; scale it down first",
        )
    # the further frames of an MPO are depth or gain maps that telephones add to a photograph
    frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
    if frames > 1:
        raise RowFault(
            Reason.ANIMATED_IMAGE,
            f"{image.format} with {frames} frames; save the frame that the question is about as a file of its own",
        )


def _plain(image: Image.Image) -> tuple[Image.Image | None, list[str]]:
    """The upright 8-bit form of ``image``, or None when it already is that; and what was done to get there."""
    steps: list[str] = []
    plain = image
    if image.getexif().get(_EXIF_ORIENTATION, 1) not in (0, 1):
        steps.append("exif_orientation")
        plain = ImageOps.exif_transpose(plain)
    if plain.mode not in PLAIN_MODES:
        steps.append(f"mode {plain.mode}")
        plain = eight_bit(plain)
    if image.format not in PLAIN_FORMATS:
        steps.append(f"format {image.format}")
    return (plain, steps) if steps else (None, steps)


def eight_bit(image: Image.Image) -> Image.Image:
    """The same picture in one of ``PLAIN_MODES``."""
    if image.mode in PLAIN_MODES:
        return image
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _scaled_gray(image)
    if image.mode in ("P", "PA", "LA", "La", "RGBa") and (image.has_transparency_data or image.mode != "P"):
        return image.convert("RGBA")
    return image.convert("L" if image.mode == "1" else "RGB")


def _scaled_gray(image: Image.Image) -> Image.Image:
    """16-bit and float grey to 8 bit: by 257 where the format says 16 bit, else from the image's own range."""
    pixels = np.asarray(image)
    if image.mode != "F" and pixels.max() <= 65535 and pixels.min() >= 0:
        return Image.fromarray(_SIXTEEN_TO_EIGHT[pixels])
    finite = pixels[np.isfinite(pixels)].astype(np.float64)
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    scaled = np.nan_to_num(pixels.astype(np.float64), nan=low, posinf=high, neginf=low) - low
    return Image.fromarray(np.rint(scaled / ((high - low) or 1.0) * 255).astype(np.uint8))
