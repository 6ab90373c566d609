"""What the gate refused, as lines of ``gate.jsonl`` in the data folder, and the route by which staff reads them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from darkroom_studio.staff import staff_only
from django.http import HttpRequest, HttpResponse, JsonResponse

PAGE = 10_000
"""Most lines in one answer."""


def record_hit(user: Any, task_id: int, found: list[str]) -> None:
    """Appends one line; a line below the size of a page is written whole, also by several workers."""
    hit = {
        "person": user.email if user else "",
        "task_id": task_id,
        "problems": [problem[:200] for problem in found[:10]],
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    line = (json.dumps(hit) + "\n").encode()
    file = os.open(_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, line)
    finally:
        os.close(file)


@staff_only
def hits(request: HttpRequest) -> HttpResponse:
    """``?after=N``: the hits from the Nth on, and the number to ask for next."""
    after = int(request.GET.get("after", 0))
    path = _path()
    lines = path.read_text().splitlines()[after : after + PAGE] if path.exists() else []
    return JsonResponse({"hits": [json.loads(line) for line in lines], "next": after + len(lines)})


def _path() -> Path:
    return Path(os.environ["LABEL_STUDIO_BASE_DATA_DIR"]) / "gate.jsonl"
