"""Routes for the toolkit's own account."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from darkroom_studio.fence import person
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

View = Callable[[HttpRequest], HttpResponse]


def staff_only(view: View) -> View:
    """401 for nobody, 403 for who is not staff, and for a write without a token."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        user = person(request)
        if user is None:
            return JsonResponse({"detail": "Authentication credentials were not provided or are wrong."}, status=401)
        if not user.is_staff or (request.method != "GET" and "Authorization" not in request.headers):
            # no write by a cookie alone: the CSRF token is not asked for
            return JsonResponse({"detail": "Only the admin of this server may do that."}, status=403)
        return view(request)

    exempt: View = csrf_exempt(guarded)
    return exempt
