"""Images of the store, by digest: those that fit a browser; of larger ones the pool has a view."""

from __future__ import annotations

import io
import os
import re
import warnings
from functools import cache

import fsspec
from darkroom_studio.content import LARGEST_SHOWN
from darkroom_studio.identity import user_of
from django.http import HttpRequest, HttpResponse
from PIL import Image

LARGEST_FILE = 2**28
"""Bytes; more than the pixels of any image that is shown."""
IMAGE_TYPES = ((b"\x89PNG", "image/png"), (b"\xff\xd8", "image/jpeg"), (b"GIF8", "image/gif"), (b"BM", "image/bmp"))


def image(request: HttpRequest, sha256: str) -> HttpResponse:
    """The stored bytes, which never change; 404 for an unknown or invalid digest."""
    if user_of(request) is None:
        return HttpResponse("log in first", status=401)
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        return HttpResponse("not a digest", status=404)
    filesystem, root = _image_store()
    path = f"{root}/{sha256[:2]}/{sha256}"
    try:
        data = filesystem.cat_file(path) if filesystem.size(path) <= LARGEST_FILE else None
    except FileNotFoundError:
        return HttpResponse("not in the image store", status=404)
    if data is None or _n_pixels(data) > LARGEST_SHOWN:
        return HttpResponse("too large for a browser: tasks show a reduced view of it", status=413)
    response = HttpResponse(data, content_type=_image_type(data))
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _n_pixels(data: bytes) -> int:
    """Read the size from the header; 0 if the data is no image."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a size that is refused here
            width, height = Image.open(io.BytesIO(data)).size
    except Image.DecompressionBombError:
        return LARGEST_SHOWN + 1
    except OSError:
        return 0
    return int(width * height)


@cache
def _image_store() -> tuple[fsspec.AbstractFileSystem, str]:
    return fsspec.core.url_to_fs(os.environ["STUDIO_IMAGES"])


def _image_type(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in IMAGE_TYPES if data.startswith(start)), "application/octet-stream")
