"""Images as the bytes of files, and as they come out of them."""

import io
from typing import Any

from PIL import Image


def encoded(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    """A file; a PNG is hardly compressed, which took much of the tests' time."""
    file = io.BytesIO()
    if format == "PNG":
        options.setdefault("compress_level", 1)
    image.save(file, format, **options)
    return file.getvalue()


def jpeg(image: Image.Image, quality: int) -> Image.Image:
    """As it comes out of a JPEG file."""
    return Image.open(io.BytesIO(encoded(image, "JPEG", quality=quality)))
