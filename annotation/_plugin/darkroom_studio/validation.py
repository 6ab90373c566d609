"""The gate: which submissions the server blocks, the log of them, and the blind part of a cross-check.

A task without ``data["gate"]`` belongs to another team's project on the same server and is not checked. A task whose
gate says ``"blind_first": true`` is served without the record's answer and boxes until the person who works on it has
settled an own answer (``own_tables.py``); then with them, and with that answer in the form. An answer is settled
once: submissions and edits must repeat it. Tasks of older versions have no such gate. At the end: which practice images
a person gets, and what was wrong with their work on one.
"""

from __future__ import annotations

import json
import math
import os
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import SystemRandom
from runpy import run_path
from typing import Any

from .content import Corners, find_errors, is_visible, read_content, rules_shown, to_corners
from .languages import note_in, translated

LOG_PAGE = 10_000
"""Most lines of the log in one answer."""


def read_body(body: bytes, encoding: str | None) -> Any:
    """Parse the JSON of a request, in UTF-8: Label Studio's parser knows other encodings, which could hide keys. Raises
    ``ValueError``, also for deep nesting, and for a number beyond a float, with which the task could never be read."""
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
    body: Any,
    rules: Mapping[str, Any],
    *,
    method: str,
    query: Mapping[str, str],
    stored: Any = None,
    settled: str = "",
    language: str = "en",
) -> list[str]:
    """Error messages for a request that submits (POST) or edits: ``body`` is its JSON, ``query`` its parameters,
    ``stored`` the result of an edited annotation, without which an edit may turn a skip into a submission."""
    if not isinstance(body, dict):
        return ["Send the submission as a JSON object."]
    if method == "POST" and "was_cancelled" in query:  # Label Studio's parameter counts more than the body
        is_skip = query["was_cancelled"].lower() in ("true", "yes", "on", "1")
    else:
        is_skip = body.get("was_cancelled") is True
    if is_skip:
        return []
    if method == "PATCH" and "result" not in body:
        if "was_cancelled" not in body:
            return []
        results = stored
    else:
        results = body.get("result")
    return find_errors(results, rules, language) or find_blind_errors(results, rules, settled, language)


def log_blocked(email: str, task_id: int, errors: Sequence[str]) -> None:
    """Append a line to ``gate.jsonl`` in the data folder; one write, so that workers do not mix their lines."""
    entry = {
        "person": email,
        "task_id": task_id,
        "problems": [error[:200] for error in errors[:10]],
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with open(_log_path(), "ab", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write((json.dumps(entry) + "\n").encode())


def read_blocked(after: int) -> list[dict[str, Any]]:
    """Read at most ``LOG_PAGE`` entries of the log, from line ``after`` on."""
    path = _log_path()
    lines = path.read_text().splitlines()[after : after + LOG_PAGE] if path.exists() else []
    return [json.loads(line) for line in lines]


def _log_path() -> Path:
    return Path(os.environ["LABEL_STUDIO_BASE_DATA_DIR"]) / "gate.jsonl"


OWN_ANSWER = "own_answer"
"""The key of a served task's data; empty: not settled yet."""
LONGEST = 1000
_WITHHELD = "record_shown"


def is_blind_first(rules: Any) -> bool:
    """Read from a task's gate that it asks for an own answer before the record is shown."""
    return isinstance(rules, Mapping) and rules.get("kind") == "cross_check" and rules.get("blind_first") is True


def without_key(task: Mapping[str, Any]) -> dict[str, Any]:
    """A task without the key by which a sync finds it, which earlier versions computed from what a task is for, and
    without what it builds on."""
    data = task.get("data")
    if not isinstance(data, dict) or not isinstance(data.get("gate"), dict):
        return dict(task)  # another team's
    return {**task, "data": {name: value for name, value in data.items() if name not in ("key", "base")}}


def served_task(task: Mapping[str, Any], settled: str) -> dict[str, Any]:
    """A blind-first task as its checker gets it; ``settled`` is empty before they have answered."""
    data = {**task["data"], OWN_ANSWER: settled}
    if not settled:
        return {**task, "data": {**data, _WITHHELD: ""}, "predictions": []}
    own = {"id": "blind_answer", "from_name": "blind_answer", "to_name": "image", "type": "textarea"}
    entry = {**own, "value": {"text": [settled]}}
    records = [{**record, "result": [entry, *record["result"]]} for record in task.get("predictions") or ()]
    return {**task, "data": data, "predictions": records}


def task_in(task: Mapping[str, Any], language: str) -> dict[str, Any]:
    """A task with its notes in a language; another team's as it is."""
    data = task.get("data")
    gate = data.get("gate") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(gate, dict):
        return dict(task)
    data = dict(data)
    for name in {"rules", "reasons", "question_shown", "record_shown"} & set(data):
        data[name] = note_in(data[name], language)
    if data.get("rules") and gate.get("width"):  # the first paragraph has numbers
        size = rules_shown(gate["width"], gate["height"], gate["max_share"], language)
        data["rules"] = "\n\n".join([size, *data["rules"].split("\n\n")[1:]])
    return {**task, "data": data}


def answer_problem(answer: Any, language: str = "en") -> str:
    """Say in a sentence why something is no answer of a checker; empty for an answer."""
    if not isinstance(answer, str) or not is_visible(answer):
        return translated("Answer the question first.", language)
    if len(answer) > LONGEST:
        said = "Your answer has {} characters; at most {} are kept."
        return translated(said, language, f"{len(answer):,}", f"{LONGEST:,}")
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in answer):
        return translated("Answer in one line of ordinary characters.", language)
    return ""


def find_blind_errors(results: Any, rules: Mapping[str, Any], settled: str, language: str = "en") -> list[str]:
    """Errors of a submission of a blind-first task that does not repeat the settled answer."""
    if not is_blind_first(rules):
        return []
    if not settled:
        first = "Answer the question before you judge the record: the record is shown to you afterwards."
        return [translated(first, language)]
    if read_content(results, rules).texts["blind_answer"] != settled:
        said = "Your own answer was “{}”, before you saw the record. It cannot be changed."
        return [translated(said, language, settled[:100])]
    return []


N_IMAGES, N_PASSING, PRACTISING = 5, 4, ("annotator", "checker")
"""Practice images of a try, how many of them must be right, and who practises."""
LEAST_OVERLAP = 0.5
"""Mean IoU from which boxes are right."""
MOST_BOXES = 20


def draw_practice(n_before: Mapping[str, int]) -> list[tuple[str, bool]]:
    """The images of a try (``n_before``: how often the person got each): the rarest, two or three with an error."""
    chance = SystemRandom()
    planted = [True, True, False, False, chance.random() < 0.5]
    chance.shuffle(planted)
    keys = sorted(chance.sample(sorted(n_before), len(n_before)), key=lambda key: n_before[key])
    return list(zip(keys, planted, strict=False))


def read_boxes(sent: Any, size: Sequence[int]) -> list[Corners]:
    """Rectangles in percent as boxes in pixels. Raises ``ValueError`` for anything else, and for none or too many."""
    rectangles = [box for box in sent if isinstance(box, dict)] if isinstance(sent, list) else []
    if not 0 < len(rectangles) == len(sent) <= MOST_BOXES:
        raise ValueError(f"expected a list of 1 to {MOST_BOXES} rectangles")
    return [to_corners(box, *size) for box in rectangles]


def practice_errors(image: Mapping[str, Any], verdict: str) -> list[str]:
    """Name the wrong ones of a person's answer, boxes and verdict on a practice image."""
    is_right = {
        "answer": _records("answers")["matches"](image["own"], image["answer"]),
        "box": overlap(image["own_boxes"], image["boxes"]) >= LEAST_OVERLAP,
        "verdict": (verdict == "reject") == image["is_planted"],
    }
    return [name for name, right in is_right.items() if not right]


def overlap(boxes: Sequence[Sequence[int]], others: Sequence[Sequence[int]]) -> float:
    """Mean IoU of boxes paired one to one, the best pair first; a box without a partner counts as 0."""
    iou, total, paired = _records("geometry")["iou"], 0.0, set[tuple[int, int]]()
    pairs = [(iou(a, b), n, m) for n, a in enumerate(boxes) for m, b in enumerate(others)]
    for share, *pair in sorted(pairs, reverse=True):
        if paired.isdisjoint(enumerate(pair)):
            total += share
            paired.update(enumerate(pair))
    return total / max(len(boxes), len(others))


@cache
def _records(name: str) -> dict[str, Any]:
    """One of Darkroom's modules of records, from its file: Label Studio's environment does not have Darkroom."""
    return run_path(str(Path(__file__).parents[3] / "pipelines" / "records" / f"{name}.py"))
