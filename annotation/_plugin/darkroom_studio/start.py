"""Start page of people without staff rights, in place of Label Studio's list of projects: work done today and waiting.

A task waits for a person who has no annotation on it, unless another one has it open: so Label Studio serves it.
Records of theirs that were rejected come back as tasks of the round ``rework`` with the same image.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from core.views import main as studio_main
from darkroom_studio.access import campaign_of, is_open, role_of, round_of
from darkroom_studio.administration import counted
from darkroom_studio.content import WRITING
from darkroom_studio.identity import builds_on, is_begun, submitted
from darkroom_studio.languages import language_of, marked, title_in, translated
from darkroom_studio.middleware import POLICY
from darkroom_studio.own_tables import pending
from django.db.models import Count, F, Q
from django.db.models.fields.json import KT
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template import Context, Engine
from django.utils.timezone import now
from projects.models import Project
from projects.views import project_list
from tasks.models import Task

ROUNDS = ("annotate", "cross_check", "accept", "rework", "review", "verify", "suitability")
"""In the order of a record's way."""
FIRST = ("rework", "accept", "cross_check", "review", "annotate", "verify", "suitability")
"""In the order of urgency: begun work comes before new work."""

START = "/projects/"
_TEMPLATE = Path(__file__).with_name("start.html").read_text(encoding="utf-8")


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
    language = language_of(request)
    rows = [row._replace(title=title_in(row.title, language)) for row in progress_of(user)]
    own = submitted(completed_by=user, was_cancelled=False, project__in=[row.project_id for row in rows])
    last = own.select_related("task").order_by("-id").first()
    values = {
        "language": language or "en",
        "email": user.email,
        "role": role_of(user),
        "rows": rows,
        "last": last if last and not is_begun(builds_on(last.task, last.id)) else None,
        "next": min([row for row in rows if row.n_waiting], key=lambda row: FIRST.index(row.round), default=None),
        "summary": summary(rows, language),
        "practises": bool(pending(user)),
        "n_sent_back": sum(row.n_sent_back for row in rows),
    }
    # no variable of the page is HTML
    response = HttpResponse(Engine(autoescape=True).from_string(marked(_TEMPLATE, language)).render(Context(values)))
    response["Cache-Control"] = "no-store"
    response["Content-Security-Policy"] = POLICY
    return response


def progress(request: HttpRequest) -> HttpResponse:
    """Answer with the person's progress in one project; the waiting tasks of others do not count."""
    user: Any = request.user
    if not user.is_authenticated:
        return JsonResponse({"detail": "Log in first."}, status=401)
    number = request.GET.get("project", "")
    rows = progress_of(user, project_id=int(number)) if number.isdecimal() else []
    return JsonResponse({"text": summary(rows, language_of(request)) if rows else ""})


class RoundProgress(NamedTuple):
    """One person's work in one project."""

    project_id: int
    title: str
    campaign: str
    round: str
    n_today: int
    n_waiting: int
    n_sent_back: int
    """Waiting records that this person wrote."""

    @property
    def n_all(self) -> int:
        return self.n_today + self.n_waiting


def progress_of(user: Any, *, project_id: int | None = None) -> list[RoundProgress]:
    """Every project that is open to the person (or one), campaign by campaign, in the order of the rounds; none of a
    campaign in which they have to practise first."""
    ours, closed = Project.objects.filter(description__startswith="darkroom "), pending(user)
    projects = [project for project in ours if round_of(project) in ROUNDS and is_open(project, user)]
    projects = [project for project in projects if campaign_of(project) not in closed]
    rows = [_progress(project, user, projects) for project in projects if project_id in (None, project.id)]
    return sorted(rows, key=lambda row: (row.campaign, ROUNDS.index(row.round), row.project_id))


def _progress(project: Any, user: Any, projects: Iterable[Any]) -> RoundProgress:
    """``projects`` are the ones to look for the person's own records in."""
    waiting = _waiting(project, user)
    midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    today = submitted(completed_by=user, project=project, was_cancelled=False, created_at__gte=midnight)
    return RoundProgress(
        project_id=project.id,
        title=project.title,
        campaign=campaign_of(project),
        round=round_of(project),
        n_today=today.count(),
        n_waiting=waiting.count(),
        n_sent_back=_sent_back(waiting, user, project, projects) if round_of(project) == "rework" else 0,
    )


def summary(rows: Iterable[RoundProgress], language: str = "en") -> str:
    """``7 of 40 today, 3 sent back to you``."""
    rows = list(rows)
    n_back = sum(row.n_sent_back for row in rows)
    counts = [f"{n:,}" for n in (sum(row.n_today for row in rows), sum(row.n_all for row in rows), n_back)]
    if n_back:
        return translated("{} of {} today, {} sent back to you", language, *counts)
    return translated("{} of {} today", language, *counts[:2])


def _waiting(project: Any, user: Any) -> Any:
    """Tasks that Label Studio would serve; it keeps one for whoever has it open, for an hour."""
    others = Q(locks__expire_at__gt=now()) & ~Q(locks__user=user)
    tasks = Task.objects.filter(project=project, is_labeled=False).exclude(annotations__completed_by=user)
    tasks = counted(tasks).annotate(n_open=Count("locks", filter=others))
    return tasks.filter(n_open__lt=F("overlap") - F("n_annotations"))


def _sent_back(waiting: Any, user: Any, project: Any, projects: Iterable[Any]) -> int:
    images = set(waiting.values_list(KT("data__image"), flat=True))
    if not images:
        return 0
    campaign = campaign_of(project)
    written_in = [p.id for p in projects if round_of(p) in WRITING and campaign_of(p) == campaign]
    own = submitted(completed_by=user, project__in=written_in, was_cancelled=False)
    return len(images & set(Task.objects.filter(annotations__in=own).values_list(KT("data__image"), flat=True)))
