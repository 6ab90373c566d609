"""Roles (Django groups ``darkroom:<role>``), and the rounds that each may open. A project's description names its
round, and the roles if not all of the round's have it: ``darkroom cross_check:checker …``."""

from __future__ import annotations

from typing import Any

ROLES = ("annotator", "checker", "expert")
OPEN_TO = {
    "annotate": ("annotator",),
    "cross_check": ("annotator", "checker"),
    "rework": ("annotator",),
    "accept": ("expert",),
    "review": ("expert",),
    "verify": ("annotator", "checker", "expert"),
    "suitability": ("annotator", "expert"),
}
UNKNOWN = "Authentication credentials were not provided or are wrong."
FORBIDDEN = "Only the admin of this server may do that."


def role_of(user: Any) -> str:
    names = [group.name for group in user.groups.all() if group.name.startswith("darkroom:")]
    return names[0].removeprefix("darkroom:") if names else ""


def round_of(project: Any) -> str:
    """The round of a project; empty for another team's project."""
    return _opening(project)[0]


def open_roles(project: Any) -> tuple[str, ...]:
    round, narrowed = _opening(project)
    return tuple(role for role in OPEN_TO.get(round, ()) if not narrowed or role in narrowed)


def is_open(project: Any, user: Any) -> bool:
    return user.is_staff or not round_of(project) or role_of(user) in open_roles(project)


def _opening(project: Any) -> tuple[str, list[str]]:
    words = (project.description or "").split()
    if len(words) < 2 or words[0] != "darkroom":
        return "", []
    round, _, roles = words[1].partition(":")
    return round, [role for role in roles.split(",") if role]
