"""One annotation of Label Studio, taken apart: whose it is, and what each field of its form holds.

    {"id": 7, "completed_by": 3, "updated_by": 3, "created_at": "…", "lead_time": 41.2, "was_cancelled": false,
     "result": [{"from_name": "box", "type": "rectanglelabels", "original_width": 4000, "original_height": 3000,
                 "value": {"x": 60.1, "y": 70, "width": 3, "height": 2, "rotation": 0, "rectanglelabels": ["target"]}},
                {"from_name": "question", "type": "textarea", "value": {"text": ["What does the sign say?"]}}, …]}

The order of the results is not fixed; they are found by ``from_name``. A fault is a ``RowFault`` with a typed reason.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pipelines.rejects import Reason, RowFault, storable

Results = Sequence[Mapping[str, Any]]
"""What one field of the form holds: results, each with its ``value``."""


def signer(raw: Mapping[str, Any]) -> int:
    """The account that signed; whoever entered it for somebody else has forged it."""
    signed, edited = raw.get("completed_by"), raw.get("updated_by")
    if edited is not None and edited != signed:
        raise RowFault(Reason.FORGED_SUBMISSION, f"signed by account {signed}, entered by account {edited}")
    if not isinstance(signed, int):
        raise RowFault(Reason.BROKEN_SUBMISSION, f"signed by {signed!r}, which is no account")
    return signed


def by_name(raw: Mapping[str, Any], names: Collection[str]) -> dict[str, Results]:
    """Every field that was filled in; ``names`` are those that the form has."""
    results = raw.get("result")
    if not isinstance(results, list):
        raise RowFault(Reason.BROKEN_SUBMISSION, f"the result is {type(results).__name__}, not a list")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in results:
        if not isinstance(one, Mapping) or not isinstance(one.get("value"), Mapping):
            raise RowFault(Reason.BROKEN_SUBMISSION, f"a result is no object with a value: {json.dumps(one)[:200]}")
        if one.get("from_name") not in names:
            raise RowFault(Reason.BROKEN_SUBMISSION, f"a result of {one.get('from_name')!r}, which the form has not")
        found.setdefault(one["from_name"], []).append(one)
    return dict(found)


def text(found: Results | None) -> str:
    """What was typed in, line under line; empty for nothing."""
    parts = [part for one in found or () for part in one["value"].get("text") or ()]
    if not all(isinstance(part, str) for part in parts):
        raise RowFault(Reason.BROKEN_SUBMISSION, f"a text field holds {parts!r}")
    return storable("\n".join(parts).strip())


def chosen(found: Results | None) -> tuple[str, ...]:
    """The names of all that was chosen."""
    return tuple(str(choice) for one in found or () for choice in one["value"].get("choices") or ())


def chosen_one(found: Results | None) -> str:
    """What was chosen where one thing is asked for; empty for nothing."""
    choices = chosen(found)
    if len(choices) > 1:
        raise RowFault(Reason.BROKEN_SUBMISSION, f"several choices where one is asked for: {list(choices)}")
    return choices[0] if choices else ""
