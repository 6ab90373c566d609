"""Validation of submissions, and the plug-in's part of pages (Django middleware).

A submission that breaks the rules is answered with the errors, and the form keeps its content.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from darkroom_studio.identity import user_of
from darkroom_studio.pages import finish_page
from darkroom_studio.validation import find_submission_errors, log_blocked, read_body
from django.http import HttpRequest, HttpResponse, JsonResponse
from tasks.models import Annotation, Task

GetResponse = Callable[[HttpRequest], HttpResponse]
SUBMIT = re.compile(r"^/api/tasks/(\d+)/annotations/?$")
EDIT = re.compile(r"^/api/annotations/(\d+)/?$")
DRAFT = re.compile(r"^/api/(tasks/\d+/(annotations/\d+/)?drafts|drafts/\d+)/?$")


class SubmissionMiddleware:
    """Blocks submissions that break the rules; adds the plug-in's part to pages.

    Runs last, when the user is known.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if DRAFT.match(request.path) and request.method in ("POST", "PATCH", "PUT") and not _is_readable(request):
            return JsonResponse({"status_code": 400, "detail": "Send the draft as JSON."}, status=400)
        task = _submitted_task(request)
        if task is not None and (errors := _submission_errors(request, task)):
            user = user_of(request)
            log_blocked(user.email if user else "", task.id, errors)
            return _rejection(errors)
        response = self.get_response(request)
        return finish_page(request, response)


def _is_readable(request: HttpRequest) -> bool:
    try:
        read_body(request.body, request.encoding)
    except ValueError:
        return False
    return request.content_type == "application/json"


def _submitted_task(request: HttpRequest) -> Any:
    """The task of a submission or an edit; None for every other request."""
    if request.method == "POST" and (match := SUBMIT.match(request.path)):
        return Task.objects.filter(id=match[1]).only("id", "data").first()
    if request.method in ("PATCH", "PUT") and (match := EDIT.match(request.path)):
        return Task.objects.filter(annotations__id=match[1]).only("id", "data").first()
    return None


def _submission_errors(request: HttpRequest, task: Any) -> list[str]:
    rules, user = task.data.get("gate"), user_of(request)
    if not isinstance(rules, dict) or request.user.is_staff or user is None:
        return []
    if request.content_type != "application/json":
        return ["Send the submission as JSON."]  # Label Studio would read a form, and the gate something else
    try:
        body = read_body(request.body, request.encoding)
    except ValueError as error:
        return [f"Send the submission as JSON: {error}"]
    if isinstance(body, dict) and body.get("completed_by") not in (None, user.id):
        return ["A submission must be signed by the account that sends it."]
    if request.method == "POST" and _is_excluded(task, user):
        return ["You have already worked on this record. Skip it; another annotator will take it."]
    edited = EDIT.match(request.path)
    stored = Annotation.objects.filter(id=edited[1]).values_list("result", flat=True).first() if edited else None
    return find_submission_errors(body, rules, method=str(request.method), query=request.GET, stored=stored)


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
