"""What one person may see of tasks: nobody's annotations and names but their own. Pure functions, without Django."""

from __future__ import annotations

from typing import Any

NAMES = ("annotators", "completed_by", "updated_by", "comment_authors", "created_username", "reviewers")


def blinded(value: Any, user_id: int, *, email: str = "") -> Any:
    """``value`` without others' annotations and names, at any depth; what is the user's own stays.

    Label Studio signs annotations with the account's number and drafts with its e-mail address.

    >>> blinded({"annotations": [{"id": 1, "completed_by": 7}, {"id": 2, "completed_by": 8}]}, 8)
    {'annotations': [{'id': 2, 'completed_by': 8}]}
    """
    if isinstance(value, list):
        return [blinded(one, user_id, email=email) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, inner in value.items():
        if name in ("annotations", "drafts") and isinstance(inner, list):
            inner = [one for one in inner if not isinstance(one, dict) or _owner(one) in (user_id, email)]
        elif name in NAMES and _id(inner) != user_id:
            inner = [] if isinstance(inner, list) else None
        kept[name] = blinded(inner, user_id, email=email)
    return kept


def only_own(people: Any, user_id: int) -> Any:
    """Of a list of accounts, the user's own.

    >>> only_own([{"id": 7, "email": "ann@example.com"}, {"id": 8, "email": "bob@example.com"}], 8)
    [{'id': 8, 'email': 'bob@example.com'}]
    """
    return [one for one in people if _id(one) == user_id] if isinstance(people, list) else people


def _owner(annotation: dict[str, Any]) -> Any:
    return _id(annotation.get("completed_by", annotation.get("user")))


def _id(value: Any) -> Any:
    return value.get("id") if isinstance(value, dict) else value
