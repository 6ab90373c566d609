"""Access control and validation for every request (Django middleware).

Label Studio's community edition gives every member every permission (issues 742, 859): delete a project, import,
export, read who annotated what. Here users without staff rights read their own work, submit, and nothing else. A
submission that breaks the rules is answered with the errors, and the form keeps its content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from darkroom_studio.permissions import OPEN_TO, blind, is_open, only_own, role_of, round_of
from darkroom_studio.validation import find_errors, log_blocked
from django.http import HttpRequest, HttpResponse, JsonResponse
from projects.models import Project
from rest_framework.authtoken.models import Token
from rest_framework.exceptions import APIException
from rest_framework_simplejwt.authentication import JWTAuthentication
from tasks.models import Annotation, Task

GetResponse = Callable[[HttpRequest], HttpResponse]
FORBIDDEN = "Only the admin of this server may do that."
READS = ("GET", "HEAD", "OPTIONS")
CLOSED_READS = re.compile(
    r"^/api/(projects/\d+/(export|exports|imports|annotators)\b|tasks/\d+/annotations|annotations/\d+|webhooks|storages"
    r"|invite|organizations/\d+/memberships)|^/darkroom/(people|hits|overlaps)|^/django-rq|^/admin|^/projects/\d+/(settings|data/)"
    r"(export|import)?"
)
OPEN_READS = re.compile(r"^/projects/\d+/data/?$|^/projects/\d+/?$")
WRITES = re.compile(
    r"^/api/tasks/\d+/(annotations|drafts)/?$|^/api/tasks/\d+/annotations/\d+/drafts/?$|^/api/annotations/\d+/?$"
    r"|^/api/drafts/\d+/?$|^/api/dm/views/?(\d+/?)?(order/?)?$|^/user/|^/logout|^/api/current-user/|^/api/users/\d+/?$"
    r"|^/api/token/|^/__lsa/"
)
BLINDED = ("/api/tasks", "/api/dm/", "/api/projects", "/api/users")
ACCOUNT = re.compile(r"^/api/users/(\d+)\b")
ALL_ACCOUNTS = re.compile(r"^/api/users/?$")
PROJECT = re.compile(r"^/projects/(\d+)\b")
ALL_PROJECTS = re.compile(r"^/api/projects/?$")
SUBMIT = re.compile(r"^/api/tasks/(\d+)/annotations/?$")
EDIT = re.compile(r"^/api/annotations/(\d+)/?$")
CLOSED_PAGE, _STYLE, _SIDE_PANELS, _BOX_SIZE = (
    Path(__file__).with_name(name).read_text() for name in ("closed.html", "page.css", "side_panels.js", "box_size.js")
)
INSERTS = {  # what goes into pages, by the tag that follows
    "</head>": f"<style>{_STYLE}</style><script>{_SIDE_PANELS}</script>",
    "</body>": f"<script>{_BOX_SIZE}</script>",
}


class AccessMiddleware:
    """Rejects what only staff may do, and blinds the answers to everybody else."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = user_of(request)
        if user is None or user.is_staff:
            return self.get_response(request)
        if not _is_allowed(request, user):
            return JsonResponse({"status_code": 403, "detail": FORBIDDEN}, status=403)
        response = _closed_page(request.path, user) or self.get_response(request)
        is_json = not response.streaming and response.get("Content-Type", "").startswith("application/json")
        if request.path.startswith(BLINDED) and is_json:
            content = json.loads(response.content or b"null")
            response.content = json.dumps(_visible(content, request.path, user)).encode()
            response.headers.pop("Content-Length", None)
        return response


def user_of(request: HttpRequest) -> Any:
    """The user by session or token (Label Studio reads tokens only in its views); None for anonymous requests."""
    if request.user.is_authenticated:
        return request.user
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "token":
        token = Token.objects.select_related("user").filter(key=key.strip()).first()
        return token.user if token else None
    if scheme.lower() != "bearer":
        return None
    try:
        user_and_token = JWTAuthentication().authenticate(request)
    except APIException:
        return None  # Label Studio's own view answers 401
    return user_and_token[0] if user_and_token else None


def _is_allowed(request: HttpRequest, user: Any) -> bool:
    path, method = request.path, request.method
    if (account := ACCOUNT.match(path)) and int(account[1]) != user.id:
        return False
    if method in READS:
        return bool(OPEN_READS.match(path)) or not CLOSED_READS.match(path)
    if path.rstrip("/") == "/api/dm/actions":
        return request.GET.get("id") == "next_task"
    if account:
        return method == "PATCH"
    if re.match(r"^/api/annotations/", path):
        return method in ("PATCH", "PUT")
    return bool(WRITES.match(path))


def _closed_page(path: str, user: Any) -> HttpResponse | None:
    """The page of a project that is closed to the user; Label Studio's own would stay blank."""
    match = PROJECT.match(path)
    project = Project.objects.filter(id=match[1]).only("description").first() if match else None
    if project is None or is_open(project, user):
        return None
    roles = " or ".join(OPEN_TO[round_of(project)])
    return HttpResponse(CLOSED_PAGE.format(roles=roles, role=role_of(user) or "none"), status=403)


def _visible(content: Any, path: str, user: Any) -> Any:
    if ALL_ACCOUNTS.match(path):
        return only_own(content, user.id)
    return blind(_open_projects(content, user) if ALL_PROJECTS.match(path) else content, user.id, email=user.email)


def _open_projects(content: Any, user: Any) -> Any:
    """The API's list of projects, without those that are closed to the user."""
    if not isinstance(content, dict) or not isinstance(content.get("results"), list):
        return content
    listed = content["results"]
    projects = Project.objects.in_bulk([row["id"] for row in listed])
    rows = [row for row in listed if is_open(projects[row["id"]], user)]
    return {**content, "results": rows, "count": content["count"] - len(listed) + len(rows)}


class SubmissionMiddleware:
    """Blocks submissions that break the rules; adds the plug-in's style and scripts to pages.

    Runs last, when the user is known.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        task = _submitted_task(request)
        if task is not None and (errors := _submission_errors(request, task)):
            user = user_of(request)
            log_blocked(user.email if user else "", task.id, errors)
            return _rejection(errors)
        response = self.get_response(request)
        # every page is the same single-page app: a project can be opened from any of them without another page load
        if request.user.is_authenticated and response.get("Content-Type", "").startswith("text/html"):
            for tag, insert in INSERTS.items():
                response.content = response.content.replace(tag.encode(), (insert + tag).encode(), 1)
            response.headers.pop("Content-Length", None)
        return response


def _submitted_task(request: HttpRequest) -> Any:
    """The task of a submission or an edit; None for every other request."""
    if request.method == "POST" and (match := SUBMIT.match(request.path)):
        return Task.objects.filter(id=match[1]).only("id", "data").first()
    if request.method in ("PATCH", "PUT") and (match := EDIT.match(request.path)):
        return Task.objects.filter(annotations__id=match[1]).only("id", "data").first()
    return None


def _submission_errors(request: HttpRequest, task: Any) -> list[str]:
    rules = task.data.get("gate")
    if not isinstance(rules, dict) or request.user.is_staff:
        return []
    try:
        body = json.loads(request.body or b"{}")
    except ValueError:
        return []  # Label Studio answers 400
    user = user_of(request)
    if not isinstance(body, dict) or user is None:
        return []
    if body.get("completed_by") not in (None, user.id):
        return ["A submission must be signed by the account that sends it."]
    if request.method == "POST" and _is_excluded(task, user):
        return ["You have already worked on this record. Skip it; another annotator will take it."]
    skipped = body.get("was_cancelled") or request.GET.get("was_cancelled") in ("1", "true")
    if skipped or not isinstance(body.get("result"), list):
        return []
    return find_errors(body["result"], rules)


def _is_excluded(task: Any, user: Any) -> bool:
    """Whether the import reserved an empty annotation for this user, who worked on the record in an earlier round."""
    own = Annotation.objects.filter(task_id=task.id, completed_by=user, was_cancelled=False)
    return bool(own.filter(result_count=0, lead_time__isnull=True).exists())


def _rejection(errors: list[str]) -> JsonResponse:
    # 403 + PAUSED is the one kind of error whose text Label Studio 1.23 shows to the annotator, in a window that stays
    # if there are validation errors; a 400 gives only "Annotation is not saved, please try again".
    return JsonResponse(
        {
            "status_code": 403,
            "detail": "Not saved; your input is still here.",
            "validation_errors": {"non_field_errors": errors},
            "display_context": {"reason": "PAUSED"},
        },
        status=403,
    )
