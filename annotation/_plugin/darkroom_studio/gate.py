"""The gate: a submission that breaks the rules is refused with the reasons, and the annotator's form keeps its data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from darkroom_studio import rules
from darkroom_studio.fence import person
from darkroom_studio.hits import record_hit
from django.http import HttpRequest, HttpResponse, JsonResponse
from tasks.models import Annotation, Task

SUBMIT = re.compile(r"^/api/tasks/(\d+)/annotations/?$")
EDIT = re.compile(r"^/api/annotations/(\d+)/?$")
HERE = Path(__file__).parent
PAGE = {  # what goes into pages, and before which tag
    "</head>": f"<style>{(HERE / 'page.css').read_text()}</style><script>{(HERE / 'panels.js').read_text()}</script>",
    "</body>": f"<script>{(HERE / 'live.js').read_text()}</script>",
}


class Gate:
    """Django middleware; runs last, when the user is known."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Refuses, or passes on; pages get our scripts and style."""
        task = _task(request)
        if task is not None and (found := _problems(request, task)):
            record_hit(person(request), task.id, found)
            return _refusal(found)
        response = self.get_response(request)
        # all pages are one program: a project may be opened from any of them without another page being asked for
        if request.user.is_authenticated and response.get("Content-Type", "").startswith("text/html"):
            for tag, script in PAGE.items():
                response.content = response.content.replace(tag.encode(), (script + tag).encode(), 1)
            response.headers.pop("Content-Length", None)
        return response


def _task(request: HttpRequest) -> Any:
    """The task that a request submits to or edits; None for every other request."""
    if request.method == "POST" and (found := SUBMIT.match(request.path)):
        return Task.objects.filter(id=found[1]).only("id", "data").first()
    if request.method in ("PATCH", "PUT") and (found := EDIT.match(request.path)):
        return Task.objects.filter(annotations__id=found[1]).only("id", "data").first()
    return None


def _problems(request: HttpRequest, task: Any) -> list[str]:
    gate = task.data.get("gate")
    if not isinstance(gate, dict) or request.user.is_staff:
        return []
    try:
        body = json.loads(request.body or b"{}")
    except ValueError:
        return []  # Label Studio answers 400
    user = person(request)
    if not isinstance(body, dict) or user is None:
        return []
    if body.get("completed_by") not in (None, user.id):
        return ["A submission is signed by the person who makes it."]
    if request.method == "POST" and _has_seat(task, user):
        return ["You have worked on this record already; skip it, somebody else will do it."]
    skipped = body.get("was_cancelled") or request.GET.get("was_cancelled") in ("1", "true")
    if skipped or not isinstance(body.get("result"), list):
        return []
    return rules.problems(body["result"], gate)


def _has_seat(task: Any, user: Any) -> bool:
    """Whether the record was in this person's hands before: an import entered an empty annotation for them."""
    mine = Annotation.objects.filter(task_id=task.id, completed_by=user, was_cancelled=False)
    return bool(mine.filter(result_count=0, lead_time__isnull=True).exists())


def _refusal(found: list[str]) -> JsonResponse:
    # 403 + PAUSED is the one kind of error whose text Label Studio 1.23 shows to the annotator, in a window that stays
    # if there are validation errors; a 400 gives only "Annotation is not saved, please try again".
    return JsonResponse(
        {
            "status_code": 403,
            "detail": "Not saved; what you entered is still here.",
            "validation_errors": {"non_field_errors": found},
            "display_context": {"reason": "PAUSED"},
        },
        status=403,
    )
