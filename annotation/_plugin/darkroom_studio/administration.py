"""What only staff may ask of the plug-in: the log of blocked submissions, and how many annotations complete a task."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps

from darkroom_studio.identity import user_of
from darkroom_studio.permissions import FORBIDDEN, UNKNOWN
from darkroom_studio.validation import read_blocked
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from tasks.models import Task

View = Callable[[HttpRequest], HttpResponse]


def staff_only(view: View) -> View:
    """401 for anonymous requests; 403 without staff rights, and for writes without a token."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        user = user_of(request)
        if user is None:
            return JsonResponse({"detail": UNKNOWN}, status=401)
        if not user.is_staff or (request.method != "GET" and "Authorization" not in request.headers):
            # no write by cookie alone: these views are exempt from the CSRF check
            return JsonResponse({"detail": FORBIDDEN}, status=403)
        return view(request)

    exempt: View = csrf_exempt(guarded)
    return exempt


@staff_only
def blocked_submissions(request: HttpRequest) -> HttpResponse:
    after = int(request.GET.get("after", 0))
    entries = read_blocked(after)
    return JsonResponse({"hits": entries, "next": after + len(entries)})


@staff_only
def overlaps(request: HttpRequest) -> HttpResponse:
    """Sets the overlaps and whether each task is finished.

    Label Studio's own PATCH leaves a task finished that no longer is, and label streams do not serve it.
    """
    if request.method != "POST":
        return JsonResponse({"detail": "POST only"}, status=405)
    overlap_of = {int(task): int(overlap) for task, overlap in json.loads(request.body)["overlaps"].items()}
    with transaction.atomic():
        for task in Task.objects.filter(id__in=overlap_of):
            task.overlap = overlap_of[task.id]
            task.update_is_labeled()
            task.save(update_fields=["overlap", "is_labeled"])
    return JsonResponse({"n_tasks": len(overlap_of)})
