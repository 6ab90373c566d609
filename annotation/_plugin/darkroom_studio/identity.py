"""The sender of a request, and the objects that are theirs: account, tasks given to them, annotations, drafts.

A submission can be corrected until another person has begun a task that builds on it (``data["base"]``, never served):
corrections delete such tasks, and the next sync hands them out again, with the corrected record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from darkroom_studio.access import Owned, is_open
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from projects.models import LabelStreamHistory, Project
from rest_framework.authtoken.models import Token
from rest_framework.exceptions import APIException
from rest_framework_simplejwt.authentication import JWTAuthentication
from tasks.models import Annotation, AnnotationDraft, Task, TaskLock


def user_of(request: HttpRequest) -> Any:
    """The user by session or token (Label Studio reads tokens only in its views); None for anonymous requests."""
    if request.user.is_authenticated:
        return request.user
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "token":
        token = Token.objects.select_related("user").filter(key=key.strip(), user__is_active=True).first()
        return token.user if token else None
    if scheme.lower() != "bearer":
        return None
    try:
        user_and_token = JWTAuthentication().authenticate(request)
    except APIException:
        return None
    return user_and_token[0] if user_and_token else None


def is_own(kind: Owned, number: Any, user: Any) -> bool:
    """Check that the object with this number exists and is the user's own."""
    return str(number).isdecimal() and _CHECKS[kind](int(number), user)


def _task(number: int, user: Any) -> bool:
    """Check that the label stream gave the task to the user. Not every task of an open project: whoever reads them one
    by one sees which image comes twice, and so which of its checks has a planted error."""
    begun = (
        TaskLock.objects.filter(user=user),
        submitted(completed_by=user),
        AnnotationDraft.objects.filter(user=user),
    )
    if any(rows.filter(task_id=number).exists() for rows in begun):
        return True
    histories = LabelStreamHistory.objects.filter(user=user, project__tasks=number)
    return any(entry["taskId"] == number for history in histories for entry in history.data or ())


def submitted(**whose: Any) -> Any:
    """Submitted annotations, without the empty ones that an import reserved to keep a task from a person."""
    return Annotation.objects.filter(**whose).exclude(result_count=0, lead_time__isnull=True, was_cancelled=False)


def has_worked(project_id: int, user: Any) -> bool:
    drafts = AnnotationDraft.objects.filter(task__project_id=project_id, user=user)
    return bool(submitted(completed_by=user, project_id=project_id).exists() or drafts.exists())


def _project(number: int, user: Any) -> bool:
    project = Project.objects.filter(id=number).first()
    return project is not None and is_open(project, user)


_CHECKS: Mapping[Owned, Callable[[int, Any], bool]] = {
    "account": lambda number, user: bool(number == user.id),
    "annotation": lambda number, user: bool(submitted(completed_by=user, id=number).exists()),
    "draft": lambda number, user: bool(AnnotationDraft.objects.filter(id=number, user=user).exists()),
    "project": _project,
    "task": _task,
}


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
