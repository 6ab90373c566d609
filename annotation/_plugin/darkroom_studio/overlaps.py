"""``POST {"overlaps": {"<task>": <annotations that complete it>}}``.

Label Studio's own PATCH leaves a task finished that no longer is, and label streams do not serve it.
"""

from __future__ import annotations

import json

from darkroom_studio.staff import staff_only
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from tasks.models import Task


@staff_only
def overlaps(request: HttpRequest) -> HttpResponse:
    """Sets them, and whether each task is finished."""
    if request.method != "POST":
        return JsonResponse({"detail": "POST only"}, status=405)
    wanted = {int(task): int(overlap) for task, overlap in json.loads(request.body)["overlaps"].items()}
    with transaction.atomic():
        for task in Task.objects.filter(id__in=wanted):
            task.overlap = wanted[task.id]
            task.update_is_labeled()
            task.save(update_fields=["overlap", "is_labeled"])
    return JsonResponse({"n_tasks": len(wanted)})
