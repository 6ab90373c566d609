"""An image as the bytes of a file."""

import io
from typing import Any

from PIL import Image


def encoded(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()
