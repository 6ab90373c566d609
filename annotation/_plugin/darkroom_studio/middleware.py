"""Validation of submissions, and the plug-in's part of pages (Django middleware). A submission that breaks the rules is
answered with the errors, and the form keeps its content."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from darkroom_studio.blind_answers import settled_answer
from darkroom_studio.fence import route_of
from darkroom_studio.identity import user_of
from darkroom_studio.validation import find_submission_errors, log_blocked, read_body
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import Context, Engine
from tasks.models import Annotation, Task

GetResponse = Callable[[HttpRequest], HttpResponse]
SUBMIT = "api/tasks/<int:pk>/annotations/"
EDIT = "api/annotations/<int:pk>/"


class SubmissionMiddleware:
    """Block submissions that break the rules; add the plug-in's part to pages. Runs after the fence."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return finish_page(request, self.get_response(request))

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], arguments: Any, numbers: dict[str, Any]
    ) -> HttpResponse | None:
        """None: Label Studio answers."""
        route, stored = route_of(request), None
        if route == SUBMIT and request.method == "POST":
            task = Task.objects.filter(id=numbers["pk"]).only("id", "data").first()
        elif route == EDIT and request.method in ("PATCH", "PUT"):
            task = Task.objects.filter(annotations__id=numbers["pk"]).only("id", "data").first()
            stored = Annotation.objects.filter(id=numbers["pk"]).values_list("result", flat=True).first()
        else:
            return None
        rules, user = task.data.get("gate") if task is not None else None, user_of(request)
        if user is None or user.is_staff or not isinstance(rules, dict):
            return None
        body = read_body(request.body, request.encoding)
        settled = settled_answer(task.id, user)
        errors = find_submission_errors(
            body, rules, method=request.method, query=request.GET, stored=stored, settled=settled
        )
        if not errors:
            return None
        log_blocked(user.email, task.id, errors)
        # 403 + PAUSED is the one kind of error whose text Label Studio 1.23 shows to the annotator, in a window that
        # stays if there are validation errors; a 400 gives only "Annotation is not saved, please try again".
        answer = {
            "status_code": 403,
            "detail": "Not saved; your input is still here.",
            "validation_errors": {"non_field_errors": errors},
            "display_context": {"reason": "PAUSED"},
        }
        return JsonResponse(answer, status=403)


TITLES = {403: "This is not open to you", 404: "There is no such page"}


def finish_page(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Add the plug-in's part to a page, and show an error as a page; data for scripts are unchanged."""
    kind = response.get("Content-Type", "")
    is_page = request.method == "GET" and "text/html" in request.headers.get("Accept", "")  # else a script asks
    if response.status_code >= 400 and kind.startswith("application/json") and is_page:
        return _error_page(response)
    if request.user.is_authenticated and kind.startswith("text/html") and not response.streaming:
        # every page is the same single-page app: a project can be opened from any of them without another page load
        for tag, insert in _inserts(request.user).items():
            response.content = response.content.replace(tag, insert.encode() + tag, 1)
        response.headers.pop("Content-Length", None)
    return response


def _inserts(user: Any) -> dict[bytes, str]:
    """Texts to insert into a page, by the tag that follows."""
    styles, early, late = ["page.css"], ["side_panels.js"], ["form.js", "box_size.js", "blind_answer.js"]
    if not user.is_staff:
        styles.append("annotator.css")
        early.append("label_stream.js")
        late.append("annotator.js")
    scripts = {b"</head>": early, b"</body>": late}
    inserts = {tag: "".join(f"<script>{_text(name)}</script>" for name in names) for tag, names in scripts.items()}
    return inserts | {b"</head>": f"<style>{''.join(map(_text, styles))}</style>{inserts[b'</head>']}"}


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _error_page(response: HttpResponse) -> HttpResponse:
    content = json.loads(response.content or b"{}")
    detail = content.get("detail") if isinstance(content, dict) else None
    title = TITLES.get(response.status_code, "That did not work")
    values = {"status": response.status_code, "title": title, "detail": detail or ""}
    page = Engine(autoescape=True).from_string(_text("error.html")).render(Context(values))
    return HttpResponse(page, status=response.status_code)
