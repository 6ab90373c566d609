"""What a submission must hold, decided from the task's own ``data["gate"]``: pure functions, without Django.

    {"kind": "annotate", "max_share": 0.05}

``kind`` is the round; a task without a gate (another team's project on the same server) is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WITH_BOXES = ("annotate", "rework")
MAY_HOLD_BOXES = (*WITH_BOXES, "cross_check", "accept")


def problems(result: Sequence[Mapping[str, Any]], gate: Mapping[str, Any]) -> list[str]:
    """Sentences for the annotator, none when the submission may be saved. ``result`` is Label Studio's list."""
    kind = gate.get("kind")
    if kind not in MAY_HOLD_BOXES:
        return []
    boxes = [one for one in result if one.get("type") in ("rectanglelabels", "rectangle")]
    needs_boxes = kind in WITH_BOXES or _verdict(result) in ("accept", "fix")
    found = ["Draw at least one box around the target object."] if needs_boxes and not boxes else []
    for number, box in enumerate(boxes, 1):
        found += _box_problems(number, box.get("value") or {}, float(gate["max_share"]))
    return found


def _verdict(result: Sequence[Mapping[str, Any]]) -> str | None:
    for one in result:
        if one.get("from_name") == "verdict":
            return str(next(iter((one.get("value") or {}).get("choices") or []), "")) or None
    return None


def _box_problems(number: int, value: Mapping[str, Any], max_share: float) -> list[str]:
    try:
        share = float(value["width"]) * float(value["height"]) / 1e4
    except (KeyError, TypeError, ValueError):
        return [f"Box {number} has no size."]
    found = []
    if share > max_share * (1 + 1e-9):
        found.append(f"Box {number} covers {share:.2%} of the image; the limit is {max_share:.0%}.")
    if share <= 0:
        found.append(f"Box {number} is empty.")
    if value.get("rotation"):
        found.append(f"Box {number} is rotated; boxes must be upright.")
    return found
