"""Who sends a request."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from rest_framework.authtoken.models import Token
from rest_framework.exceptions import APIException
from rest_framework_simplejwt.authentication import JWTAuthentication


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
