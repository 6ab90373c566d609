"""What an image file really is: probed before it is trusted, and brought into a form that every reader shows alike.

Accepted as they are: single-frame images in modes L, RGB and RGBA whose orientation is already upright. Derived (a PNG
whose parent is the original): EXIF orientation applied, palette, CMYK, 1-bit, 16-bit and float images brought to
8-bit RGB, RGBA or L. Refused with a reason: empty, unreadable, truncated, animated, larger than ``MAX_PIXELS``.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from pipelines.rejects import Reason, RowFault

MAX_PIXELS = 100_000_000
"""More than any camera in use gives; a decoded image of that size takes 300 MB."""

PLAIN_MODES = frozenset({"L", "RGB", "RGBA"})
_EXIF_ORIENTATION = 0x0112


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the size is checked below, from the header
        image = _open(data)
    _check_header(image, max_pixels)
    try:
        image.load()
    except (OSError, SyntaxError, ValueError, EOFError) as fault:
        truncated = "truncated" in str(fault).lower()
        reason = Reason.TRUNCATED_IMAGE if truncated else Reason.UNREADABLE_IMAGE
        raise RowFault(reason, f"{image.format} of {image.width}x{image.height}: {fault}") from fault
    plain, steps = _plain(image)
    kept = image if plain is None else plain
    return Probed(image.width, image.height, image.mode, image.format or "", plain, ";".join(steps) if kept else "")


def _open(data: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data))
    except Image.DecompressionBombError as fault:
        raise RowFault(Reason.TOO_LARGE_IMAGE, str(fault)) from fault
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as fault:
        raise RowFault(Reason.UNREADABLE_IMAGE, f"{len(data)} bytes are no image that Pillow knows") from fault


def _check_header(image: Image.Image, max_pixels: int) -> None:
    pixels = image.width * image.height
    if pixels > max_pixels:
        raise RowFault(
            Reason.TOO_LARGE_IMAGE,
            f"{image.width}x{image.height} = {pixels:,} pixels, the limit is {max_pixels:,}; scale it down first",
        )
    frames = getattr(image, "n_frames", 1)
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
        plain = _eight_bit(plain)
    return (plain, steps) if steps else (None, steps)


def _eight_bit(image: Image.Image) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _scaled_gray(image)
    if image.mode in ("P", "PA", "LA", "La", "RGBa") and (image.has_transparency_data or image.mode != "P"):
        return image.convert("RGBA")
    return image.convert("L" if image.mode == "1" else "RGB")


def _scaled_gray(image: Image.Image) -> Image.Image:
    """16-bit and float grey to 8 bit: by 257 where the format says 16 bit, else from the image's own range."""
    pixels = np.asarray(image).astype(np.float64)
    if image.mode == "F" or pixels.max(initial=0) > 65535 or pixels.min(initial=0) < 0:
        low, high = float(np.nanmin(pixels)), float(np.nanmax(pixels))
        pixels = (np.nan_to_num(pixels, nan=low) - low) * (65535 / (high - low) if high > low else 0)
    return Image.fromarray(np.clip(np.rint(pixels / 257), 0, 255).astype(np.uint8))
