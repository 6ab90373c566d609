"""Accounts and roles: ``GET`` lists them, ``POST {"email", "role", "password", "name"}`` makes one or changes its role.

A role is a Django group, so that it lies in the same database as the account.
"""

from __future__ import annotations

import json
from typing import Any

from darkroom_studio.roles import ROLES, role_of
from darkroom_studio.staff import staff_only
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from organizations.models import Organization
from users.models import User


@staff_only
def people(request: HttpRequest) -> HttpResponse:
    """Everybody, with role and token."""
    if request.method == "POST":
        try:
            asked = json.loads(request.body)
            return JsonResponse(_described(_enter(asked)), status=201)
        except (ValueError, KeyError, ValidationError) as fault:
            messages = fault.messages if isinstance(fault, ValidationError) else [str(fault)]
            return JsonResponse({"detail": " ".join(messages)}, status=400)
    everybody = User.objects.prefetch_related("groups").select_related("auth_token").order_by("id")
    return JsonResponse({"people": [_described(user) for user in everybody]})


@transaction.atomic
def _enter(asked: dict[str, Any]) -> Any:
    if asked["role"] not in ROLES:
        raise ValueError(f"a role is one of {', '.join(ROLES)}; found {asked['role']!r}")
    email = asked["email"].strip().lower()
    validate_email(email)
    user = User.objects.filter(email=email).first()
    if user is None:
        validate_password(asked["password"])
        user = User.objects.create_user(email=email, password=asked["password"])
        user.username = email
        organization = Organization.objects.first()
        organization.add_user(user)
        user.active_organization = organization
    if asked.get("name"):
        user.first_name = asked["name"]
    user.save()
    user.groups.set([Group.objects.get_or_create(name=f"darkroom:{asked['role']}")[0]])
    return user


def _described(user: Any) -> dict[str, Any]:
    return {
        "id": user.id,
        "email": user.email,
        "name": user.get_full_name().strip() or user.email,
        "role": "admin" if user.is_staff else role_of(user),
        "token": user.auth_token.key,
    }
