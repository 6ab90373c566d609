"""The gate: which submissions the server blocks, and the log of them.

A task without ``data["gate"]`` belongs to another team's project on the same server and is not checked.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .blind_check import find_blind_errors
from .content import find_errors

LOG_PAGE = 10_000
"""Most lines of the log in one answer."""


def read_body(body: bytes, encoding: str | None) -> Any:
    """The JSON of a request, in UTF-8: Label Studio's parser knows other encodings, which could hide keys.

    Raises ``ValueError`` for everything else, for what is too deep, and for a number beyond a float: Label Studio
    stores it, and fails whenever the task is read again.
    """
    if (encoding or "utf-8").lower() != "utf-8":
        raise ValueError("not in UTF-8")
    try:
        return json.loads((body or b"{}").decode(), parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError("too many brackets in brackets") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def find_submission_errors(
    body: Any, rules: Mapping[str, Any], *, method: str, query: Mapping[str, str], stored: Any = None, settled: str = ""
) -> list[str]:
    """Error messages for a request that submits (POST) or edits: ``body`` is its JSON, ``query`` its parameters.

    ``stored`` is the result that an edited annotation has: an edit without one may turn a skip into a submission.
    ``settled`` is the answer that a checker gave before the record was shown.
    """
    if not isinstance(body, dict):
        return ["Send the submission as a JSON object."]
    if _is_skip(body, query if method == "POST" else {}):
        return []
    if method == "PATCH" and "result" not in body:
        if "was_cancelled" not in body:
            return []
        results = stored
    else:
        results = body.get("result")
    return find_errors(results, rules) or find_blind_errors(results, rules, settled)


def _is_skip(body: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    """Whether Label Studio will store this as a skip; its parameter counts more than the body."""
    if "was_cancelled" in query:
        return query["was_cancelled"].lower() in ("true", "yes", "on", "1")
    return body.get("was_cancelled") is True


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
