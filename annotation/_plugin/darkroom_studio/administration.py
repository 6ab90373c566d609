"""Views for staff: blocked submissions, overlaps, tasks in pages by their numbers, and accounts (``/darkroom/people``).

locks     GET or POST ?project=N: tasks with locks that a kill after a submission, or a closed account, has left
tasks     GET ?project=N&after=TASK: number, data and counts; ``next`` is the page after this one, null for the last
withdrawn POST {"tasks": [...]}: deletes those that were not begun, and answers with the ones that are gone
changes   GET ?project=N&after=TASK&since=TIME&annotation=N&minimum=N: tasks with more annotations than ``minimum``, or
          skips, that were changed after ``since`` or have an annotation after number ``annotation``; without ``since``,
          all of them

Label Studio's own list counts all matching tasks for each page, and its pages shift when a task leaves the filter. Its
counter of a task's annotations is behind for ever where the server was killed between storing one and counting it.

A removed account stays, with its role and everything it submitted: records name it. Its logins end, its token is void,
and the tasks that it had open go to others at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from darkroom_studio.access import FORBIDDEN, ROLES, UNKNOWN, role_of
from darkroom_studio.identity import user_of, withdraw
from darkroom_studio.own_tables import AUDIT, PRACTICE, listed
from darkroom_studio.validation import read_blocked
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.dateparse import parse_datetime
from django.utils.timezone import now
from django.views.decorators.csrf import csrf_exempt
from organizations.models import Organization
from rest_framework.authtoken.models import Token
from tasks.models import Annotation, Task, TaskLock
from users.models import User

View = Callable[[HttpRequest], HttpResponse]


def staff_only(view: View) -> View:
    """Answer 401 to anonymous requests; 403 without staff rights, and to writes without a token."""

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
    """Set overlaps and whether tasks are finished; Label Studio's own PATCH leaves one finished that no longer is."""
    if request.method != "POST":
        return JsonResponse({"detail": "POST only"}, status=405)
    overlap_of = {int(task): int(overlap) for task, overlap in json.loads(request.body)["overlaps"].items()}
    with transaction.atomic():
        for task in Task.objects.filter(id__in=overlap_of):
            task.overlap = overlap_of[task.id]
            task.update_is_labeled()
            task.save(update_fields=["overlap", "is_labeled"])
    return JsonResponse({"n_tasks": len(overlap_of)})


@staff_only
def locks(request: HttpRequest) -> HttpResponse:
    """The tasks of a project that are locked by people who do not work on them; a POST releases them."""
    answered = Annotation.objects.filter(task_id=OuterRef("task_id"), completed_by_id=OuterRef("user_id"))
    unheld = TaskLock.objects.filter(task__project_id=_number(request, "project"), expire_at__gt=now())
    unheld = unheld.filter(Q(Exists(answered)) | Q(user__is_active=False))
    numbers = sorted(unheld.values_list("task_id", flat=True))
    if request.method == "POST":
        unheld.delete()
    return JsonResponse({"tasks": numbers})


@staff_only
def withdrawn(request: HttpRequest) -> HttpResponse:
    """Delete those of the tasks that were not begun; answer with the ones that are gone."""
    numbers = json.loads(request.body or b"{}").get("tasks", [])
    with transaction.atomic():
        return JsonResponse({"tasks": [number for number in numbers if withdraw([number])]})


@staff_only
def audit(request: HttpRequest) -> HttpResponse:
    """GET ?after=N: what administrators did, page by page; POST {"act": "…"}: what a command did."""
    if request.method == "POST":
        request.darkroom_note = str(json.loads(request.body)["act"])
        return JsonResponse({})
    rest = f"from {AUDIT} where id > %s order by id limit {PAGE}"
    return _answer(listed("id, at, who, request, status, note", rest, _number(request, "after")))


PAGE = 200
_TIMES = ("lead_time", "created_at", "updated_at")
_FIELDS = ("id", "result", "completed_by", "updated_by", "was_cancelled", "ground_truth", *_TIMES)
"""Columns of an annotation."""
_STORED = Annotation.objects.filter(task_id=OuterRef("id")).order_by()


@staff_only
def tasks(request: HttpRequest) -> HttpResponse:
    return _answer(list(counted(_page(request)).values("id", "data", "n_annotations", "overlap")[:PAGE]))


@staff_only
def changes(request: HttpRequest) -> HttpResponse:
    has_work = Q(n_annotations__gt=_number(request, "minimum")) | Exists(_STORED.filter(was_cancelled=True))
    changed, since = counted(_page(request)).filter(has_work), request.GET.get("since", "")
    if since:
        moment = parse_datetime(since)
        if moment is None:
            return JsonResponse({"detail": f"since is no time: {since[:50]!r}"}, status=400)
        newer = Annotation.objects.filter(project_id=_number(request, "project"), id__gt=_number(request, "annotation"))
        # clocks are set back now and then, numbers are not
        changed = changed.filter(Q(updated_at__gt=moment) | Q(id__in=newer.values("task_id")))
    by_task: dict[int, list[dict[str, Any]]] = {number: [] for number in changed.values_list("id", flat=True)[:PAGE]}
    for annotation in Annotation.objects.filter(task_id__in=by_task).order_by("id").values("task_id", *_FIELDS):
        by_task[annotation.pop("task_id")].append(annotation)
    return _answer([{"id": number, "annotations": entries} for number, entries in by_task.items()])


def counted(tasks: Any) -> Any:
    """``tasks`` with ``n_annotations``: those that are stored, skips left out."""
    of_task = _STORED.filter(was_cancelled=False).values("task_id").annotate(n=Count("id")).values("n")
    return tasks.annotate(n_annotations=Coalesce(Subquery(of_task), 0))


def _page(request: HttpRequest) -> Any:
    return Task.objects.filter(project_id=_number(request, "project"), id__gt=_number(request, "after")).order_by("id")


def _answer(page: list[dict[str, Any]]) -> HttpResponse:
    return JsonResponse({"tasks": page, "next": page[-1]["id"] if len(page) == PAGE else None})


def _number(request: HttpRequest, name: str) -> int:
    return int(request.GET.get(name) or 0)


@staff_only
def accounts(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        try:
            row = _account_row(_save_account(json.loads(request.body)))
            request.darkroom_note = f"{row['email']}: {row['role']}"
            return JsonResponse(row, status=201)
        except (ValueError, KeyError, ValidationError) as error:
            return _bad_request(error)
    users = User.objects.prefetch_related("groups").select_related("auth_token").order_by("id")
    people = {user.id: _account_row(user) | {"practice": []} for user in users}
    columns = "user_id, campaign, number, n_right, step / 2 as n, seconds, ended_at as at"
    for each in listed(columns, f"from {PRACTICE} order by campaign, number"):
        if person := people.get(each.pop("user_id")):  # an account that an admin deleted is gone
            person["practice"].append(each)
    return JsonResponse({"people": list(people.values())})


@transaction.atomic
def _save_account(body: dict[str, Any]) -> Any:
    if body["role"] not in ROLES:
        raise ValueError(f"a role is one of {', '.join(ROLES)}; found {body['role']!r}")
    email = body["email"].strip().lower()
    validate_email(email)
    user = User.objects.filter(email=email).first()
    if user is None:
        validate_password(body["password"])
        user = User.objects.create_user(email=email, password=body["password"])
        user.username = email
        organization = Organization.objects.first()
        organization.add_user(user)
        user.active_organization = organization
    elif not user.is_active:
        validate_password(body["password"], user)
        user.set_password(body["password"])
        user.is_active = True
    if body.get("name"):
        user.first_name = body["name"]
    user.save()
    user.groups.set([Group.objects.get_or_create(name=f"darkroom:{body['role']}")[0]])
    return user


def _account_row(user: Any) -> dict[str, Any]:
    return {
        "id": user.id,
        "email": user.email,
        "name": user.get_full_name().strip() or user.email,
        "role": "admin" if user.is_staff else role_of(user),
        "is_active": user.is_active,
        "token": user.auth_token.key,
    }


def account_change(change: Callable[[Any, dict[str, Any]], dict[str, Any]]) -> View:
    """The view that changes the account of a POST, and answers with its address and what ``change`` returns."""

    @staff_only
    @wraps(change)
    def view(request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            return JsonResponse({"detail": "POST only"}, status=405)
        try:
            body = json.loads(request.body)
            with transaction.atomic():
                user = User.objects.filter(email=body["email"].strip().lower(), is_staff=False).first()
                if user is None:
                    raise ValueError(f"no annotator, checker or expert has the account {body['email']}")
                request.darkroom_note = user.email
                return JsonResponse({"email": user.email, **change(user, body)})
        except (ValueError, KeyError, AttributeError, TypeError, ValidationError) as error:
            return _bad_request(error)

    return view


@account_change
def remove(user: Any, body: dict[str, Any]) -> dict[str, Any]:
    """Deactivate an account; answer how many open tasks were released."""
    user.is_active = False
    user.save(update_fields=["is_active"])
    _void_token(user)
    n_released, _ = TaskLock.objects.filter(user=user).delete()
    return {"n_released": n_released}


@account_change
def password(user: Any, body: dict[str, Any]) -> dict[str, Any]:
    """Set a password; sessions with the old one end, and the token changes."""
    validate_password(body["password"], user)
    user.set_password(body["password"])
    user.save(update_fields=["password"])
    _void_token(user)
    return {}


def _void_token(user: Any) -> None:
    Token.objects.filter(user=user).delete()
    Token.objects.create(user=user)


def _bad_request(error: Exception) -> JsonResponse:
    messages = error.messages if isinstance(error, ValidationError) else [str(error)]
    return JsonResponse({"detail": " ".join(messages)}, status=400)
