"""The sender of a request, and the objects that are theirs: account, tasks given to them, annotations, drafts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from darkroom_studio.access import Owned, is_open
from django.http import HttpRequest
from projects.models import LabelStreamHistory, Project
from rest_framework.authtoken.models import Token
from rest_framework.exceptions import APIException
from rest_framework_simplejwt.authentication import JWTAuthentication
from tasks.models import Annotation, AnnotationDraft, TaskLock


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
