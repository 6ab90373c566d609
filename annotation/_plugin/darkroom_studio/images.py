"""The image store, served to who is logged in: ``/darkroom/images/<sha256>``. The bytes of a digest never change."""

from __future__ import annotations

import os
import re
from functools import cache

import fsspec
from darkroom_studio.fence import person
from django.http import HttpRequest, HttpResponse

KINDS = ((b"\x89PNG", "image/png"), (b"\xff\xd8", "image/jpeg"), (b"GIF8", "image/gif"), (b"BM", "image/bmp"))


def image(request: HttpRequest, sha256: str) -> HttpResponse:
    """The stored bytes; 404 for what is no digest or not there."""
    if person(request) is None:
        return HttpResponse("log in first", status=401)
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        return HttpResponse("not a digest", status=404)
    filesystem, root = _store()
    try:
        data = filesystem.cat_file(f"{root}/{sha256[:2]}/{sha256}")
    except FileNotFoundError:
        return HttpResponse("not in the image store", status=404)
    response = HttpResponse(data, content_type=_kind(data))
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    response["X-Content-Type-Options"] = "nosniff"
    return response


@cache
def _store() -> tuple[fsspec.AbstractFileSystem, str]:
    return fsspec.core.url_to_fs(os.environ["STUDIO_IMAGES"])


def _kind(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in KINDS if data.startswith(start)), "application/octet-stream")
