"""Who may open which round, and what an annotator may read of others' work (blinding).

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
NAME_KEYS = ("annotators", "completed_by", "updated_by", "comment_authors", "created_username", "reviewers")


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
    return user.is_staff or not round or role_of(user) in OPEN_TO[round]


def blind(value: Any, user_id: int, *, email: str = "") -> Any:
    """``value`` without others' annotations and names, at any depth; the user's own stay.

    Label Studio signs annotations with the account's number and drafts with its e-mail address.

    >>> blind({"annotations": [{"id": 1, "completed_by": 7}, {"id": 2, "completed_by": 8}]}, 8)
    {'annotations': [{'id': 2, 'completed_by': 8}]}
    """
    if isinstance(value, list):
        return [blind(entry, user_id, email=email) for entry in value]
    if not isinstance(value, dict):
        return value
    blinded = {}
    for key, inner in value.items():
        if key in ("annotations", "drafts") and isinstance(inner, list):
            inner = [entry for entry in inner if not isinstance(entry, dict) or _owner(entry) in (user_id, email)]
        elif key in NAME_KEYS and _id(inner) != user_id:
            inner = [] if isinstance(inner, list) else None
        blinded[key] = blind(inner, user_id, email=email)
    return blinded


def only_own(accounts: Any, user_id: int) -> Any:
    """The user's own account of a list of accounts.

    >>> only_own([{"id": 7, "email": "ann@example.com"}, {"id": 8, "email": "bob@example.com"}], 8)
    [{'id': 8, 'email': 'bob@example.com'}]
    """
    return [account for account in accounts if _id(account) == user_id] if isinstance(accounts, list) else accounts


def _owner(annotation: dict[str, Any]) -> Any:
    return _id(annotation.get("completed_by", annotation.get("user")))


def _id(value: Any) -> Any:
    return value.get("id") if isinstance(value, dict) else value
