"""The fence: who is not staff may read what concerns their work and submit, and nothing else.

Label Studio's community edition gives every member every permission (issues 742, 859): to delete a project, to import,
to export, to read who annotated what. Staff (the toolkit's own account) is not fenced in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from darkroom_studio.blinding import blinded, only_own
from darkroom_studio.doors import LIST, closed_page, open_only
from django.http import HttpRequest, HttpResponse, JsonResponse
from rest_framework.authtoken.models import Token

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
EVERYBODY = re.compile(r"^/api/users/?$")


class Fence:
    """Django middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Refuses, or passes on; a person sees no one's annotations and names but their own."""
        user = person(request)
        if user is None or user.is_staff:
            return self.get_response(request)
        if not _allowed(request, user):
            return JsonResponse(
                {"status_code": 403, "detail": "Only the admin of this server may do that."}, status=403
            )
        response = closed_page(request.path, user) or self.get_response(request)
        if request.path.startswith(BLINDED) and _is_json(response):
            found = json.loads(response.content or b"null")
            response.content = json.dumps(_seen(found, request.path, user)).encode()
            response.headers.pop("Content-Length", None)
        return response


def person(request: HttpRequest) -> Any:
    """The user by session or by token (Label Studio looks at tokens only in its views); None for nobody."""
    if request.user.is_authenticated:
        return request.user
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "token":
        return _bearer(request) if scheme.lower() == "bearer" else None
    token = Token.objects.select_related("user").filter(key=key.strip()).first()
    return token.user if token else None


def _bearer(request: HttpRequest) -> Any:
    from rest_framework.exceptions import APIException
    from rest_framework_simplejwt.authentication import JWTAuthentication

    try:
        found = JWTAuthentication().authenticate(request)
    except APIException:
        return None  # Label Studio's own view answers 401
    return found[0] if found else None


def _seen(found: Any, path: str, user: Any) -> Any:
    if EVERYBODY.match(path):
        return only_own(found, user.id)
    return blinded(open_only(found, user) if LIST.match(path) else found, user.id, email=user.email)


def _allowed(request: HttpRequest, user: Any) -> bool:
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


def _is_json(response: HttpResponse) -> bool:
    return not response.streaming and response.get("Content-Type", "").startswith("application/json")
