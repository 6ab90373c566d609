"""JSON in what a policy wrote: models reason first, put fences around it, and repeat themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_DECODER = json.JSONDecoder()


def json_objects(text: str) -> Iterator[Any]:
    """Every JSON object that begins somewhere in ``text`` and lies in no earlier one, in their order."""
    start = text.find("{")
    while start >= 0:
        try:
            found, end = _DECODER.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            end = start + 1
        else:
            yield found
        start = text.find("{", end)
