"""Rounds that are closed to somebody: a page that says so, and lists of projects without them."""

from __future__ import annotations

import re
from typing import Any

from darkroom_studio.roles import OPEN_TO, is_open, role_of, round_of
from django.http import HttpResponse
from projects.models import Project

PROJECT = re.compile(r"^/projects/(\d+)\b")
LIST = re.compile(r"^/api/projects/?$")
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Closed</title></head>
<body style="font:16px/1.5 sans-serif;max-width:36em;margin:20vh auto 0;padding:0 1em">
<h1 style="font-size:22px">This round is not open to you</h1>
<p>It is for the role {wanted}; your account has the role {role}. If that is wrong, ask whoever runs the campaign.</p>
<p><a href="/projects/">Your projects</a></p></body></html>"""


def closed_page(path: str, user: Any) -> HttpResponse | None:
    """What to show instead of a page of a project that is closed to somebody; without it Label Studio's stays blank."""
    found = PROJECT.match(path)
    project = Project.objects.filter(id=found[1]).only("description").first() if found else None
    if project is None or is_open(project, user):
        return None
    wanted = " or ".join(OPEN_TO[round_of(project)])
    return HttpResponse(PAGE.format(wanted=wanted, role=role_of(user) or "none"), status=403)


def open_only(listed: Any, user: Any) -> Any:
    """A list of projects, as the API answers it, without those that are closed to somebody."""
    if not isinstance(listed, dict) or not isinstance(listed.get("results"), list):
        return listed
    projects = Project.objects.in_bulk([one["id"] for one in listed["results"]])
    seen = [one for one in listed["results"] if is_open(projects[one["id"]], user)]
    return {**listed, "results": seen, "count": listed["count"] - len(listed["results"]) + len(seen)}
