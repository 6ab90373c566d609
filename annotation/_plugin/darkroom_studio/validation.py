"""The rules of a submission, from the task's own ``data["gate"]``, and the log of submissions that they blocked.

    {"kind": "annotate", "max_share": 0.05}

``kind`` is the round. A task without this key belongs to another team's project on the same server and is not checked.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NEEDS_BOXES = ("annotate", "rework")
MAY_HOLD_BOXES = (*NEEDS_BOXES, "cross_check", "accept")
LOG_PAGE = 10_000
"""Most lines of the log in one answer."""


def find_errors(results: Sequence[Mapping[str, Any]], rules: Mapping[str, Any]) -> list[str]:
    """Error messages for the annotator; empty for a valid submission. ``results`` is Label Studio's list."""
    kind = rules.get("kind")
    if kind not in MAY_HOLD_BOXES:
        return []
    boxes = [entry for entry in results if entry.get("type") in ("rectanglelabels", "rectangle")]
    needs_boxes = kind in NEEDS_BOXES or _verdict(results) in ("accept", "fix")
    errors = ["Draw at least one box around the target object."] if needs_boxes and not boxes else []
    for number, box in enumerate(boxes, 1):
        errors += _box_errors(number, box.get("value") or {}, float(rules["max_share"]))
    return errors


def _verdict(results: Sequence[Mapping[str, Any]]) -> str | None:
    for entry in results:
        if entry.get("from_name") == "verdict":
            return str(next(iter((entry.get("value") or {}).get("choices") or []), "")) or None
    return None


def _box_errors(number: int, value: Mapping[str, Any], max_share: float) -> list[str]:
    try:
        share = float(value["width"]) * float(value["height"]) / 1e4
    except (KeyError, TypeError, ValueError):
        return [f"Box {number} has no size."]
    errors = []
    if share > max_share * (1 + 1e-9):
        errors.append(f"Box {number} covers {share:.2%} of the image; the limit is {max_share:.0%}.")
    if share <= 0:
        errors.append(f"Box {number} is empty.")
    if value.get("rotation"):
        errors.append(f"Box {number} is rotated; boxes must be upright.")
    return errors


def log_blocked(email: str, task_id: int, errors: Sequence[str]) -> None:
    """Appends a line to ``gate.jsonl`` in the data folder; one write, so that workers do not mix their lines."""
    entry = {
        "person": email,
        "task_id": task_id,
        "problems": [error[:200] for error in errors[:10]],
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    file = os.open(_log_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, (json.dumps(entry) + "\n").encode())
    finally:
        os.close(file)


def read_blocked(after: int) -> list[dict[str, Any]]:
    """At most ``LOG_PAGE`` entries of the log, from line ``after`` on."""
    path = _log_path()
    lines = path.read_text().splitlines()[after : after + LOG_PAGE] if path.exists() else []
    return [json.loads(line) for line in lines]


def _log_path() -> Path:
    return Path(os.environ["LABEL_STUDIO_BASE_DATA_DIR"]) / "gate.jsonl"
