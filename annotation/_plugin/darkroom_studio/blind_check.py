"""The blind part of a cross-check: what a checker gets before, and sends after, their own answer is settled.

A task whose gate says ``"blind_first": true`` is served without the record's answer and boxes until the person who
works on it has settled an own answer (``blind_answers.py``); then with them, and with that answer in the form. An
answer is settled once: submissions and edits must repeat it. Tasks of older versions have no such gate.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from .content import read_content

OWN_ANSWER = "own_answer"
"""The key of a served task's data; empty: not settled yet."""
LONGEST = 1000
_WITHHELD = "record_shown"


def is_blind_first(rules: Any) -> bool:
    """Whether a task's gate asks for an own answer before the record is shown."""
    return isinstance(rules, Mapping) and rules.get("kind") == "cross_check" and rules.get("blind_first") is True


def served_task(task: Mapping[str, Any], settled: str) -> dict[str, Any]:
    """A blind-first task as its checker gets it; ``settled`` is empty before they have answered."""
    data = {**task["data"], OWN_ANSWER: settled}
    if not settled:
        return {**task, "data": {**data, _WITHHELD: ""}, "predictions": []}
    own = {"id": "blind_answer", "from_name": "blind_answer", "to_name": "image", "type": "textarea"}
    entry = {**own, "value": {"text": [settled]}}
    records = [{**record, "result": [entry, *record["result"]]} for record in task.get("predictions") or ()]
    return {**task, "data": data, "predictions": records}


def answer_problem(answer: Any) -> str:
    """Why something is no answer of a checker, in a sentence; empty for an answer."""
    if not isinstance(answer, str) or not any(letter.isprintable() and not letter.isspace() for letter in answer):
        return "Answer the question first."
    if len(answer) > LONGEST:
        return f"Your answer has {len(answer):,} characters; at most {LONGEST:,} are kept."
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in answer):
        return "Answer in one line of ordinary characters."
    return ""


def find_blind_errors(results: Any, rules: Mapping[str, Any], settled: str) -> list[str]:
    """Why a submission of a blind-first task does not repeat the settled answer; empty if it does."""
    if not is_blind_first(rules):
        return []
    if not settled:
        return ["Answer the question before you judge the record: the record is shown to you afterwards."]
    if read_content(results, rules).texts["blind_answer"] != settled:
        return [f"Your own answer was “{settled[:100]}”, before you saw the record. It cannot be changed."]
    return []
