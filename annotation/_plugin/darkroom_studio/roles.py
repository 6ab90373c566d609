"""Roles and the rounds that they open. A project says its round in its description: ``darkroom <round> …``."""

from __future__ import annotations

from typing import Any

ROLES = ("annotator", "expert")
OPEN_TO = {
    "annotate": ("annotator",),
    "cross_check": ("annotator",),
    "rework": ("annotator",),
    "accept": ("expert",),
    "review": ("expert",),
    "verify": ("annotator", "expert"),
    "suitability": ("annotator", "expert"),
}


def role_of(user: Any) -> str:
    """The role of an account; empty for one that has none."""
    names = [group.name for group in user.groups.all() if group.name.startswith("darkroom:")]
    return names[0].removeprefix("darkroom:") if names else ""


def round_of(project: Any) -> str:
    """The round of a project; empty for a project that is not the toolkit's."""
    words = (project.description or "").split()
    return words[1] if len(words) > 1 and words[0] == "darkroom" else ""


def is_open(project: Any, user: Any) -> bool:
    """Whether somebody may see the project; other teams' projects are left alone."""
    found = round_of(project)
    return user.is_staff or not found or role_of(user) in OPEN_TO[found]
