"""The plug-in's part of every page: style and scripts, fewer controls for annotators, errors as pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template import Context, Engine

_STYLE, _ANNOTATOR_STYLE, _SIDE_PANELS, _LABEL_STREAM, _FORM, _BOX_SIZE, _BLIND_ANSWER, _ANNOTATOR, _ERROR = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in (
        "page.css",
        "annotator.css",
        "side_panels.js",
        "label_stream.js",
        "form.js",
        "box_size.js",
        "blind_answer.js",
        "annotator.js",
        "error.html",
    )
)
TITLES = {403: "This is not open to you", 404: "There is no such page"}


def finish_page(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response as its reader gets it; data for scripts stay as they are."""
    kind = response.get("Content-Type", "")
    if response.status_code >= 400 and kind.startswith("application/json") and _is_page(request):
        return _error_page(response)
    if request.user.is_authenticated and kind.startswith("text/html") and not response.streaming:
        # every page is the same single-page app: a project can be opened from any of them without another page load
        for tag, insert in _inserts(request.user).items():
            response.content = response.content.replace(tag, insert.encode() + tag, 1)
        response.headers.pop("Content-Length", None)
    return response


def _inserts(user: Any) -> dict[bytes, str]:
    """What goes into a page, by the tag that follows."""
    styles, early, late = [_STYLE], [_SIDE_PANELS], [_FORM, _BOX_SIZE, _BLIND_ANSWER]
    if not user.is_staff:
        styles.append(_ANNOTATOR_STYLE)
        early.append(_LABEL_STREAM)
        late.append(_ANNOTATOR)
    scripts = {b"</head>": early, b"</body>": late}
    inserts = {tag: "".join(f"<script>{script}</script>" for script in texts) for tag, texts in scripts.items()}
    return inserts | {b"</head>": f"<style>{''.join(styles)}</style>{inserts[b'</head>']}"}


def _is_page(request: HttpRequest) -> bool:
    """Whether a person opened the address, rather than a script."""
    return request.method == "GET" and "text/html" in request.headers.get("Accept", "")


def _error_page(response: HttpResponse) -> HttpResponse:
    content = json.loads(response.content or b"{}")
    detail = content.get("detail") if isinstance(content, dict) else None
    title = TITLES.get(response.status_code, "That did not work")
    values = {"status": response.status_code, "title": title, "detail": detail or ""}
    page = Engine(autoescape=True).from_string(_ERROR).render(Context(values))
    return HttpResponse(page, status=response.status_code)
