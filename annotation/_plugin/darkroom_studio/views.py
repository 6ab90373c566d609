"""The plug-in's routes below ``/darkroom/``, in front of Label Studio's own.

people        GET lists accounts; POST {"email", "role", "password", "name"} creates one or changes its role (staff)
hits          GET ?after=N: submissions that validation blocked, and the number to continue from (staff)
overlaps      POST {"overlaps": {"<task>": <annotations that complete it>}} (staff)
images/<sha>  an image of the store (every account)
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import fsspec
from core.urls import urlpatterns as studio_urlpatterns
from darkroom_studio.middleware import FORBIDDEN, user_of
from darkroom_studio.permissions import ROLES, role_of
from darkroom_studio.validation import read_blocked
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from organizations.models import Organization
from tasks.models import Task
from users.models import User

View = Callable[[HttpRequest], HttpResponse]
IMAGE_TYPES = ((b"\x89PNG", "image/png"), (b"\xff\xd8", "image/jpeg"), (b"GIF8", "image/gif"), (b"BM", "image/bmp"))


def staff_only(view: View) -> View:
    """401 for anonymous requests; 403 without staff rights, and for writes without a token."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        user = user_of(request)
        if user is None:
            return JsonResponse({"detail": "Authentication credentials were not provided or are wrong."}, status=401)
        if not user.is_staff or (request.method != "GET" and "Authorization" not in request.headers):
            # no write by cookie alone: these views are exempt from the CSRF check
            return JsonResponse({"detail": FORBIDDEN}, status=403)
        return view(request)

    exempt: View = csrf_exempt(guarded)
    return exempt


@staff_only
def accounts(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        try:
            return JsonResponse(_account_row(_save_account(json.loads(request.body))), status=201)
        except (ValueError, KeyError, ValidationError) as error:
            messages = error.messages if isinstance(error, ValidationError) else [str(error)]
            return JsonResponse({"detail": " ".join(messages)}, status=400)
    users = User.objects.prefetch_related("groups").select_related("auth_token").order_by("id")
    return JsonResponse({"people": [_account_row(user) for user in users]})


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
        "token": user.auth_token.key,
    }


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


def image(request: HttpRequest, sha256: str) -> HttpResponse:
    """The stored bytes, which never change; 404 for an unknown or invalid digest."""
    if user_of(request) is None:
        return HttpResponse("log in first", status=401)
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        return HttpResponse("not a digest", status=404)
    filesystem, root = _image_store()
    try:
        data = filesystem.cat_file(f"{root}/{sha256[:2]}/{sha256}")
    except FileNotFoundError:
        return HttpResponse("not in the image store", status=404)
    response = HttpResponse(data, content_type=_image_type(data))
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    response["X-Content-Type-Options"] = "nosniff"
    return response


@cache
def _image_store() -> tuple[fsspec.AbstractFileSystem, str]:
    return fsspec.core.url_to_fs(os.environ["STUDIO_IMAGES"])


def _image_type(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in IMAGE_TYPES if data.startswith(start)), "application/octet-stream")


urlpatterns = [
    path("darkroom/people", accounts),
    path("darkroom/hits", blocked_submissions),
    path("darkroom/overlaps", overlaps),
    path("darkroom/images/<str:sha256>", image),
    *studio_urlpatterns,
]
