"""The fence (Django middleware): routes that the access table does not open are closed to people without staff rights,
since Label Studio's community edition gives every member every permission (issues 742, 859)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from darkroom_studio import access
from darkroom_studio.identity import has_worked, is_own, user_of
from darkroom_studio.languages import language_of, marked, project_in
from darkroom_studio.own_tables import note_request, pending, task_for, work_on
from darkroom_studio.validation import read_body, task_in
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from projects.models import Project

GetResponse = Callable[[HttpRequest], HttpResponse]
CLOSED_PAGE = Path(__file__).with_name("closed.html").read_text(encoding="utf-8")
TABLE = access.AccessTable.load()
LABEL_STREAM = "projects/<int:pk>/data/"


class AccessMiddleware:
    """Decide on the route that Django has resolved, before its view runs; cut the answer to its shape afterwards."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        note_request(request, response)
        rule: access.AccessRule | None = getattr(request, "darkroom_rule", None)
        if rule is None or not rule.answer or response.status_code >= 300:
            return response
        return _shaped(response, rule, user_of(request), language_of(request))

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], arguments: Any, numbers: dict[str, Any]
    ) -> HttpResponse | None:
        """None: Label Studio answers."""
        request.darkroom_rule = None
        user = user_of(request)
        if user is not None and user.is_staff:
            return None
        rule = TABLE.find(route_of(request), request.method)
        if user is None:
            return None if rule is not None and rule.public else _log_in_first(request)
        if rule is None:
            return _refused(access.FORBIDDEN)
        request.darkroom_rule = rule
        return _refuse(request, rule, user, numbers)


def route_of(request: HttpRequest) -> str:
    return str(request.resolver_match.route).removeprefix("^")


def _refuse(request: HttpRequest, rule: access.AccessRule, user: Any, numbers: dict[str, Any]) -> HttpResponse | None:
    if rule.public:
        return None
    if rule.own.get("pk") == "project" and not request.path.startswith("/api/"):
        closed = _closed_page(request, rule, user, numbers["pk"])
        if closed is not None:
            return closed
    try:
        body = _body(request, rule)
    except ValueError:
        return _refused("The body of this request must be JSON in UTF-8.", status=400)
    reason = access.refusal(rule, dict(request.GET.lists()), body)
    if reason:
        return _refused(reason)
    for name, kind in rule.own.items():
        values = [numbers[name]] if name in numbers else request.GET.getlist(name)
        if not values or not all(is_own(kind, value, user) for value in values):
            return _refused(f"This {kind} is not yours." if kind != "project" else "This project is not open to you.")
        if kind == "project" and _must_practise(user, *values):
            return _refused("Practise first: your start page leads there. Tasks that you have begun stay yours.")
    if rule.constant is not None:
        request.darkroom_rule = None
        return JsonResponse(rule.constant, safe=False)
    if rule.ignores_body:
        request._body = b"{}"
    elif rule.dropped and body is not None:
        kept = {name: value for name, value in body.items() if name in rule.body}
        if not is_own("draft", kept.get("draft_id"), user):  # Label Studio would tell whether there is such a draft
            kept.pop("draft_id", None)
        request._body = json.dumps(kept).encode()
    return None


def _body(request: HttpRequest, rule: access.AccessRule) -> Any:
    """The parsed body; None without one. Raises ``ValueError`` for forms, which could carry keys unseen."""
    if not request.body:
        return None
    if request.content_type != "application/json":
        raise ValueError(request.content_type)
    return read_body(request.body, request.encoding)


def _closed_page(request: HttpRequest, rule: access.AccessRule, user: Any, number: int) -> HttpResponse | None:
    """The page of a project that is closed to the user; the way to the label stream for every other page of it."""
    project = Project.objects.filter(id=number).only("description").first()
    if project is not None and not access.is_open(project, user):
        roles = " or ".join(access.open_roles(project)) or "admin"
        page = marked(CLOSED_PAGE, language_of(request))
        return HttpResponse(page.format(roles=roles, role=access.role_of(user) or "none"), status=403)
    if _must_practise(user, number):
        return HttpResponseRedirect("/darkroom/practice")
    is_stream = rule.route == LABEL_STREAM and "labeling" in request.GET
    if not is_stream or access.refusal(rule, dict(request.GET.lists()), None):
        return HttpResponseRedirect(f"/projects/{number}/data?labeling=1")
    return None


def _must_practise(user: Any, *numbers: Any) -> bool:
    projects = Project.objects.filter(id__in=numbers) if (campaigns := pending(user)) else ()
    return any(access.round_of(project) and access.campaign_of(project) in campaigns for project in projects)


def _shaped(response: HttpResponse, rule: access.AccessRule, user: Any, language: str) -> HttpResponse:
    is_json = not response.streaming and response.get("Content-Type", "").startswith("application/json")
    if not is_json:
        logging.getLogger(__name__).error("%s answered without JSON; withheld", rule.route)
        return _refused(access.FORBIDDEN)
    if response.content:
        content = json.loads(response.content)
        if rule.answer == "projects":
            content = _open_projects(content, user, language)
        elif rule.answer == "project":
            content = _shown_project(content, Project.objects.get(id=content["id"]), language)
            if has_worked(content["id"], user):
                content["show_instruction"] = False  # the guide has opened by itself until now; its button stays
        elif rule.answer == "task":
            content = task_in(task_for(user, content), language)
            work_on(content["id"], user)
        elif rule.answer == "draft":
            work_on(content["task"], user)
        response.content = json.dumps(TABLE.shaped(content, rule.answer, person_id=user.id, email=user.email)).encode()
        response.headers.pop("Content-Length", None)
    return response


def _open_projects(content: dict[str, Any], user: Any, language: str) -> dict[str, Any]:
    """The API's list of projects, without those that are closed to the user."""
    listed = content["results"]
    projects = Project.objects.in_bulk([row["id"] for row in listed])
    opened = [(row, project) for row in listed if access.is_open(project := projects[row["id"]], user)]
    opened = [(row, project) for row, project in opened if not _must_practise(user, project.id)]
    rows = [_shown_project(row, project, language) for row, project in opened]
    return {**content, "results": rows, "count": content["count"] - len(listed) + len(rows)}


def _shown_project(content: dict[str, Any], project: Any, language: str) -> dict[str, Any]:
    """A project in the person's language; another team's as it is: what its choices show is what they store."""
    return project_in(content, language) if access.round_of(project) else content


def _log_in_first(request: HttpRequest) -> HttpResponse:
    if request.method == "GET" and "text/html" in request.headers.get("Accept", ""):
        return HttpResponseRedirect(f"/user/login/?next={quote(request.get_full_path())}")
    return JsonResponse({"status_code": 401, "detail": access.UNKNOWN}, status=401)


def _refused(reason: str, *, status: int = 403) -> JsonResponse:
    return JsonResponse({"status_code": status, "detail": reason}, status=status)
