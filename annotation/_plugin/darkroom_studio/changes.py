"""What a sync reads, for staff: the tasks of a project, and those with new work, in pages by the tasks' numbers.

tasks     GET ?project=N&after=TASK: number, data and counts; ``next`` is the page after this one, null for the last
changes   GET ?project=N&after=TASK&since=TIME&annotation=N&minimum=N: tasks with more annotations than ``minimum``, or
          skips, that were changed after ``since`` or have an annotation after number ``annotation``; without ``since``,
          all of them

Label Studio's own list counts all matching tasks for each page, and its pages shift when a task leaves the filter. Its
counter of a task's annotations is behind for ever where the server was killed between storing one and counting it.
"""

from __future__ import annotations

from typing import Any

from darkroom_studio.administration import staff_only
from django.db.models import Count, Exists, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.dateparse import parse_datetime
from tasks.models import Annotation, Task

PAGE = 200
_ANNOTATION = (
    "id",
    "result",
    "completed_by",
    "updated_by",
    "was_cancelled",
    "ground_truth",
    "lead_time",
    "created_at",
    "updated_at",
)
_STORED = Annotation.objects.filter(task_id=OuterRef("id")).order_by()


@staff_only
def tasks(request: HttpRequest) -> HttpResponse:
    return _answer(list(counted(_page(request)).values("id", "data", "n_annotations", "overlap")[:PAGE]))


@staff_only
def changes(request: HttpRequest) -> HttpResponse:
    has_work = Q(n_annotations__gt=_number(request, "minimum")) | Exists(_STORED.filter(was_cancelled=True))
    found, since = counted(_page(request)).filter(has_work), request.GET.get("since", "")
    if since:
        moment = parse_datetime(since)
        if moment is None:
            return JsonResponse({"detail": f"since is no time: {since[:50]!r}"}, status=400)
        newer = Annotation.objects.filter(project_id=_number(request, "project"), id__gt=_number(request, "annotation"))
        # clocks are set back now and then, numbers are not
        found = found.filter(Q(updated_at__gt=moment) | Q(id__in=newer.values("task_id")))
    by_task: dict[int, list[dict[str, Any]]] = {number: [] for number in found.values_list("id", flat=True)[:PAGE]}
    annotations = Annotation.objects.filter(task_id__in=by_task).order_by("id").values("task_id", *_ANNOTATION)
    for annotation in annotations:
        by_task[annotation.pop("task_id")].append(annotation)
    return _answer([{"id": number, "annotations": entries} for number, entries in by_task.items()])


def counted(tasks: Any) -> Any:
    """``tasks`` with ``n_annotations``: those that are stored, skips left out."""
    of_task = _STORED.filter(was_cancelled=False).values("task_id").annotate(n=Count("id")).values("n")
    return tasks.annotate(n_annotations=Coalesce(Subquery(of_task), 0))


def _page(request: HttpRequest) -> Any:
    query = Task.objects.filter(project_id=_number(request, "project"), id__gt=_number(request, "after"))
    return query.order_by("id")


def _answer(rows: list[dict[str, Any]]) -> HttpResponse:
    return JsonResponse({"tasks": rows, "next": rows[-1]["id"] if len(rows) == PAGE else None})


def _number(request: HttpRequest, name: str) -> int:
    return int(request.GET.get(name) or 0)
