"""Accounts that leave a campaign, and new passwords: the routes below ``/darkroom/people/``, for staff.

A removed account stays, with its role and everything it submitted: records name it. Its logins end, its
token is void, and the tasks that it had open go to others at once.
"""

from __future__ import annotations

import json
from typing import Any

from darkroom_studio.administration import staff_only
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from rest_framework.authtoken.models import Token
from tasks.models import TaskLock
from users.models import User


@staff_only
def remove(request: HttpRequest) -> HttpResponse:
    """Deactivates an account; answers how many open tasks were released."""
    return _answer(request, _deactivate)


@staff_only
def password(request: HttpRequest) -> HttpResponse:
    """Sets a password; sessions with the old one end."""
    return _answer(request, _set_password)


def activate(user: Any, new_password: str) -> None:
    """Lets a removed account come back, with a new password."""
    validate_password(new_password, user)
    user.set_password(new_password)
    user.is_active = True


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
        messages = error.messages if isinstance(error, ValidationError) else [str(error)]
        return JsonResponse({"detail": " ".join(messages)}, status=400)
