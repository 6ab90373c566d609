"""Accounts and their roles: ``/darkroom/people``, for staff."""

from __future__ import annotations

import json
from typing import Any

from darkroom_studio.administration import staff_only
from darkroom_studio.departures import activate
from darkroom_studio.permissions import ROLES, role_of
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from organizations.models import Organization
from users.models import User


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
    elif not user.is_active:
        activate(user, body["password"])
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
