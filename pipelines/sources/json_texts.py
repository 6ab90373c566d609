"""Structures that somebody's tables keep as text: JSON, or a list as Python prints it (``['red', 'blue']``)."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

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
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(value.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):  # MemoryError: ast's word for too deep
            continue
    return None
