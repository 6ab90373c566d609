"""Corrections of a submission, until another person has begun a task that builds on it (``data["base"]``, never
served): they delete such tasks, and the next sync hands them out again, with the corrected record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from darkroom_studio.identity import submitted
from django.db import transaction
from django.http import HttpResponse
from projects.models import LabelStreamHistory
from tasks.models import Task, TaskLock


def builds_on(task: Any, annotation_id: int) -> list[int]:
    """The tasks that build on an annotation of ``task``; tasks of earlier versions do not say so."""
    later = Task.objects.filter(data__image=task.data.get("image", ""), id__gt=task.id).values_list("id", "data")
    return [number for number, data in later if annotation_id in data.get("base", ())]


def is_begun(numbers: list[int]) -> bool:
    """Check that a person has got or answered one of these tasks; the label stream remembers the last hundred."""
    histories = LabelStreamHistory.objects.filter(project__tasks__in=numbers).values_list("data", flat=True)
    served = {entry["taskId"] for data in histories for entry in data or ()}
    begun = TaskLock.objects.filter(task_id__in=numbers), submitted(task_id__in=numbers)
    return not served.isdisjoint(numbers) or any(rows.exists() for rows in begun)


def withdraw(numbers: list[int]) -> bool:
    """Delete tasks; False, and none is, if one was begun. Call it in a transaction."""
    tasks = Task.objects.filter(id__in=numbers)
    list(tasks.select_for_update().values_list("id"))  # the label stream passes over locked rows
    if is_begun(numbers):
        return False
    tasks.delete()
    return True


def correct(task: Any, annotation_id: int, save: Callable[[], HttpResponse]) -> HttpResponse | None:
    """The answer of ``save``; None, and nothing is saved, once a task that builds on the annotation was begun."""
    with transaction.atomic():
        if not withdraw(builds_on(task, annotation_id)):
            return None
        response = save()
        if response.status_code >= 400:
            transaction.set_rollback(True)
    return response
