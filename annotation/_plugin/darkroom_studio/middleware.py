"""Validation of submissions, and the plug-in's part of pages (Django middleware).

A submission that breaks the rules is answered with the errors, and the form keeps its content.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from darkroom_studio.blind_answers import settled_answer
from darkroom_studio.fence import route_of
from darkroom_studio.identity import user_of
from darkroom_studio.pages import finish_page
from darkroom_studio.validation import find_submission_errors, log_blocked, read_body
from django.http import HttpRequest, HttpResponse, JsonResponse
from tasks.models import Annotation, Task

GetResponse = Callable[[HttpRequest], HttpResponse]
SUBMIT = "api/tasks/<int:pk>/annotations/"
EDIT = "api/annotations/<int:pk>/"


class SubmissionMiddleware:
    """Blocks submissions that break the rules; adds the plug-in's part to pages.

    Runs after the fence, which lets people submit only to tasks that they were given, and only JSON that can be read.
    """

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
        return _rejection(errors)


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
