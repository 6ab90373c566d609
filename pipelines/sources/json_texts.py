"""Structures that somebody's tables keep as text: JSON, or a list as Python prints it (``['red', 'blue']``)."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from pipelines.syntax import parsed

_LONGEST = 1_000_000
"""Characters: no list of choices or paths is longer, and parsing more would take a row's worth of time and memory."""


def list_in(value: Any) -> list[Any] | None:
    """A list or tuple as a list, or the list that a text spells; None for anything else."""
    if isinstance(value, list | tuple):
        return list(value)
    found = _parsed(value, "[")
    return found if isinstance(found, list) else None


def object_in(value: Any) -> Mapping[str, Any] | None:
    """A mapping, or the one that a text spells; None for anything else."""
    if isinstance(value, Mapping):
        return value
    found = _parsed(value, "{")
    return found if isinstance(found, dict) else None


def _parsed(value: Any, opening: str) -> Any:
    if not isinstance(value, str) or len(value) > _LONGEST or not value.lstrip().startswith(opening):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return _printed(value.strip())


def _printed(text: str) -> Any:
    tree = parsed(text)
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        return None
    try:
        return ast.literal_eval(tree.body[0].value)
    except (ValueError, TypeError, RecursionError, MemoryError):  # TypeError: a list as a key
        return None
