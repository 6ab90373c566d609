"""Images of the store, by digest."""

from __future__ import annotations

import os
import re
from functools import cache

import fsspec
from darkroom_studio.identity import user_of
from django.http import HttpRequest, HttpResponse

IMAGE_TYPES = ((b"\x89PNG", "image/png"), (b"\xff\xd8", "image/jpeg"), (b"GIF8", "image/gif"), (b"BM", "image/bmp"))


def image(request: HttpRequest, sha256: str) -> HttpResponse:
    """The stored bytes, which never change; 404 for an unknown or invalid digest."""
    if user_of(request) is None:
        return HttpResponse("log in first", status=401)
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        return HttpResponse("not a digest", status=404)
    filesystem, root = _image_store()
    try:
        data = filesystem.cat_file(f"{root}/{sha256[:2]}/{sha256}")
    except FileNotFoundError:
        return HttpResponse("not in the image store", status=404)
    response = HttpResponse(data, content_type=_image_type(data))
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    response["X-Content-Type-Options"] = "nosniff"
    return response


@cache
def _image_store() -> tuple[fsspec.AbstractFileSystem, str]:
    return fsspec.core.url_to_fs(os.environ["STUDIO_IMAGES"])


def _image_type(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in IMAGE_TYPES if data.startswith(start)), "application/octet-stream")
