"""Who may open which round.

A project names its round in its description: ``darkroom <round> …``. Roles are Django groups ``darkroom:<role>``.
"""

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
UNKNOWN = "Authentication credentials were not provided or are wrong."
FORBIDDEN = "Only the admin of this server may do that."


def role_of(user: Any) -> str:
    """The role of an account; empty without one."""
    names = [group.name for group in user.groups.all() if group.name.startswith("darkroom:")]
    return names[0].removeprefix("darkroom:") if names else ""


def round_of(project: Any) -> str:
    """The round of a project; empty for another team's project."""
    words = (project.description or "").split()
    return words[1] if len(words) > 1 and words[0] == "darkroom" else ""


def is_open(project: Any, user: Any) -> bool:
    """Whether the user may see the project; other teams' projects are not restricted."""
    round = round_of(project)
    return user.is_staff or not round or role_of(user) in OPEN_TO.get(round, ())
