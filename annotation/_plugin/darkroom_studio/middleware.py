"""Validation of submissions and their time, the brake on logins, the plug-in's part of pages (Django middleware). A
submission that breaks the rules is answered with the errors, and the form keeps its content."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from darkroom_studio.fence import route_of
from darkroom_studio.identity import correct, user_of
from darkroom_studio.languages import language_of, marked, translated
from darkroom_studio.own_tables import login_wait, note_login, settled_answer, work_on
from darkroom_studio.validation import find_submission_errors, log_blocked, read_body
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.gzip import GZipMiddleware
from django.template import Context, Engine
from tasks.models import Annotation, Task

GetResponse = Callable[[HttpRequest], HttpResponse]
SUBMIT, EDIT = "api/tasks/<int:pk>/annotations/", "api/annotations/<int:pk>/"
LOGIN = "user/login/"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Of pages that have no scripts but, where more follows, their own."""


KEPT = ("/react-app/", "/static/", "/label-studio-frontend/", "/dm/", "/darkroom/images/")


class SlowLineMiddleware(GZipMiddleware):
    """Compress answers, and let browsers keep files and images: Label Studio renews a cookie with each of them and says
    that they vary with it, so that all were sent anew with every page."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if request.path.startswith(KEPT):
            response.cookies.clear()
            del response["Vary"]
            response.setdefault("Cache-Control", "no-cache")  # asked for, and sent only if it has changed
        is_image = response.get("Content-Type", "").startswith("image/")
        return response if is_image else super().process_response(request, response)


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
        if route == LOGIN and request.method == "POST":
            return _logged_in(request, lambda: view(request, *arguments, **numbers))
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
        settled, language = settled_answer(task.id, user), language_of(request)
        errors = find_submission_errors(
            body, rules, method=request.method, query=request.GET, stored=stored, settled=settled, language=language
        )
        if errors:
            log_blocked(user.email, task.id, errors)
        else:
            request._body = json.dumps({**body, "lead_time": work_on(task.id, user)}).encode()
            if route == SUBMIT:
                return None
            if saved := correct(task, numbers["pk"], lambda: view(request, *arguments, **numbers)):
                return saved
            errors = [translated("Somebody else has begun to work on it: it can no longer be corrected.", language)]
        # 403 + PAUSED is the one kind of error whose text Label Studio 1.23 shows to the annotator, in a window that
        # stays if there are validation errors; a 400 gives only "Annotation is not saved, please try again".
        answer = {
            "status_code": 403,
            "detail": translated("Not saved; your input is still here.", language),
            "validation_errors": {"non_field_errors": errors},
            "display_context": {"reason": "PAUSED"},
        }
        return JsonResponse(answer, status=403)


TITLES = {403: "This is not open to you", 404: "There is no such page", 429: "Too many wrong passwords"}


def _logged_in(request: HttpRequest, log_in: Callable[[], HttpResponse]) -> HttpResponse:
    """Let a password be tried, unless too many wrong ones came for this account from this address."""
    email = request.POST.get("email", "").strip().lower()
    name = f"{email[:300]} {request.META.get('REMOTE_ADDR', '')}"
    if wait := login_wait(name):
        detail = translated("Try again in {} seconds.", language_of(request), wait)
        answer = _error_page(JsonResponse({"detail": detail}, status=429), language_of(request))
        answer["Retry-After"] = str(wait)
        return answer
    response = log_in()
    note_login(name, succeeded=response.status_code == 302)
    return response


def finish_page(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Add the plug-in's part to a page, and show an error as a page; data for scripts are unchanged."""
    response.setdefault("X-Frame-Options", "DENY")
    kind = response.get("Content-Type", "")
    is_page = request.method == "GET" and "text/html" in request.headers.get("Accept", "")  # else a script asks
    if response.status_code >= 400 and kind.startswith("application/json") and is_page:
        return _error_page(response, language_of(request))
    is_ours = response.get("Content-Security-Policy", "").startswith(POLICY)  # no page of Label Studio's
    if request.user.is_authenticated and kind.startswith("text/html") and not response.streaming and not is_ours:
        # every page is the same single-page app: a project can be opened from any of them without another page load
        for tag, insert in _inserts(request.user, language_of(request)).items():
            response.content = response.content.replace(tag, insert.encode() + tag, 1)
        response.headers.pop("Content-Length", None)
    return response


def _inserts(user: Any, language: str) -> dict[bytes, str]:
    """Texts to insert into a page, by the tag that follows."""
    styles, late = ["page.css"], ["form.js", "touch.js", "box_size.js", "blind_answer.js"]
    early = ["side_panels.js", "messages.js", "connection.js", "unsent_work.js"]
    if not user.is_staff:
        styles.append("annotator.css")
        early.append("label_stream.js")
        late.append("annotator.js")
    scripts = {b"</head>": early, b"</body>": late}
    inserts = {
        tag: "".join(f"<script>{_text(name, language)}</script>" for name in names) for tag, names in scripts.items()
    }
    style = "".join(_text(name, language) for name in styles)
    return inserts | {b"</head>": f"<style>{style}</style>{inserts[b'</head>']}"}


@cache
def _text(name: str, language: str) -> str:
    return marked(Path(__file__).with_name(name).read_text(encoding="utf-8"), language)


def _error_page(response: HttpResponse, language: str) -> HttpResponse:
    content = json.loads(response.content or b"{}")
    detail = content.get("detail") if isinstance(content, dict) else None
    title = translated(TITLES.get(response.status_code, "That did not work"), language)
    values = {"status": response.status_code, "title": title, "detail": detail or ""}
    page = Engine(autoescape=True).from_string(_text("error.html", language)).render(Context(values))
    return HttpResponse(page, status=response.status_code)
