"""The start page of people without staff rights, in the place of Label Studio's list of projects, and their progress.

/projects/           the start page; staff get Label Studio's
/                    leads there
/darkroom/progress   GET ?project=N: the line above a task, ``{"text": "7 of 40 today, 3 sent back to you"}``
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.views import main as studio_main
from darkroom_studio.permissions import role_of
from darkroom_studio.progress import next_project, progress_of, summary
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template import Context, Engine
from django.urls import path, re_path
from projects.views import project_list

START = "/projects/"
_TEMPLATE = Path(__file__).with_name("start.html").read_text()


def home(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated and not request.user.is_staff:
        return HttpResponseRedirect(START)
    response: HttpResponse = studio_main(request)
    return response


def start(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    if not user.is_authenticated or user.is_staff:
        studio: HttpResponse = project_list(request)
        return studio
    rows = progress_of(user)
    values = {
        "email": user.email,
        "role": role_of(user),
        "rows": rows,
        "next": next_project(rows),
        "summary": summary(rows),
        "n_sent_back": sum(row.n_sent_back for row in rows),
    }
    # no variable of the page is HTML
    response = HttpResponse(Engine(autoescape=True).from_string(_TEMPLATE).render(Context(values)))
    response["Cache-Control"] = "no-store"
    return response


def progress(request: HttpRequest) -> HttpResponse:
    """Of one project; the waiting tasks of others do not count."""
    user: Any = request.user
    if not user.is_authenticated:
        return JsonResponse({"detail": "Log in first."}, status=401)
    number = request.GET.get("project", "")
    rows = progress_of(user, project_id=int(number)) if number.isdecimal() else []
    return JsonResponse({"text": summary(rows) if rows else ""})


urlpatterns = [
    re_path(r"^$", home),
    path("projects/", start),
    path("darkroom/progress", progress),
]
