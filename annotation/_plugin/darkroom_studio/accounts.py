"""Accounts, their roles and passwords: ``/darkroom/people`` and the routes below it, for staff.

A removed account stays, with its role and everything it submitted: records name it. Its logins end, its
token is void, and the tasks that it had open go to others at once.
"""

from __future__ import annotations

import json
from typing import Any

from darkroom_studio.administration import staff_only
from darkroom_studio.permissions import ROLES, role_of
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from organizations.models import Organization
from rest_framework.authtoken.models import Token
from tasks.models import TaskLock
from users.models import User


@staff_only
def accounts(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        try:
            return JsonResponse(_account_row(_save_account(json.loads(request.body))), status=201)
        except (ValueError, KeyError, ValidationError) as error:
            return _bad_request(error)
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


@staff_only
def remove(request: HttpRequest) -> HttpResponse:
    """Deactivate an account; answer how many open tasks were released."""
    return _answer(request, _deactivate)


@staff_only
def password(request: HttpRequest) -> HttpResponse:
    """Set a password; sessions with the old one end."""
    return _answer(request, _set_password)


def _deactivate(user: Any, body: dict[str, Any]) -> dict[str, Any]:
    user.is_active = False
    user.save(update_fields=["is_active"])
    Token.objects.filter(user=user).delete()
    Token.objects.create(user=user)
    n_released, _ = TaskLock.objects.filter(user=user).delete()
    return {"n_released": n_released}


def _set_password(user: Any, body: dict[str, Any]) -> dict[str, Any]:
    validate_password(body["password"], user)
    user.set_password(body["password"])
    user.save(update_fields=["password"])
    return {}


def _answer(request: HttpRequest, change: Any) -> HttpResponse:
    if request.method != "POST":
        return JsonResponse({"detail": "POST only"}, status=405)
    try:
        body = json.loads(request.body)
        with transaction.atomic():
            user = User.objects.filter(email=body["email"].strip().lower(), is_staff=False).first()
            if user is None:
                raise ValueError(f"no annotator, checker or expert has the account {body['email']}")
            return JsonResponse({"email": user.email, **change(user, body)})
    except (ValueError, KeyError, AttributeError, TypeError, ValidationError) as error:
        return _bad_request(error)


def _bad_request(error: Exception) -> JsonResponse:
    messages = error.messages if isinstance(error, ValidationError) else [str(error)]
    return JsonResponse({"detail": " ".join(messages)}, status=400)
