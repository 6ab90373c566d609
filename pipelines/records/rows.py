"""Records as plain rows and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import cattrs

R = TypeVar("R")


@cache
def _converter() -> cattrs.Converter:
    return cattrs.Converter(forbid_extra_keys=True)


def to_row(record: Any) -> dict[str, Any]:
    """A record (or a part of one) as plain dicts, lists and scalars."""
    row: dict[str, Any] = _converter().unstructure(record)
    return row


def from_row(kind: type[R], row: Mapping[str, Any]) -> R:
    """The record of a row. Raises ``cattrs.BaseValidationError`` when the row does not have its fields."""
    return _converter().structure(row, kind)
