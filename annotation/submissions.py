"""One annotation of Label Studio, read and revalidated: nothing is taken on trust that the page or the gate checked.

    {"id": 7, "completed_by": 3, "updated_by": 3, "created_at": "…", "lead_time": 41.2, "was_cancelled": false,
     "result": [{"from_name": "box", "type": "rectanglelabels", "original_width": 4000, "original_height": 3000,
                 "value": {"x": 60.1, "y": 70, "width": 3, "height": 2, "rotation": 0, "rectanglelabels": ["target"]}},
                {"from_name": "question", "type": "textarea", "value": {"text": ["What does the sign say?"]}}, …]}

The order of the results is not fixed; they are found by ``from_name``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from annotation import choices
from annotation.choices import names
from annotation.geometry import share_of, to_pixels
from pipelines.geometry import Box
from pipelines.rejects import Reason, RowFault, storable

CATEGORIES = names(choices.CATEGORIES)
VERDICTS = names(choices.VERDICTS)
_TEXTS = ("question", "answer", "blind_answer", "comment")
_NAMES = {*_TEXTS, "box", "category", "count", "verdict", "reason"}


@dataclass(frozen=True, slots=True)
class Fields:
    """What a record says: the result of people's work."""

    question: str
    answer: str
    category: str
    count: int | None
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Submission:
    """One person's work on one task."""

    annotation_id: int
    person_id: int
    at: str
    lead_seconds: float | None
    texts: Mapping[str, str]
    category: str
    count: int | None
    boxes: tuple[Box, ...]
    verdict: str
    reasons: tuple[str, ...]

    @property
    def fields(self) -> Fields:
        """The record, where the submission holds one."""
        return Fields(self.texts["question"], self.texts["answer"], self.category, self.count, self.boxes)


class Frame(NamedTuple):
    """The image that boxes are drawn on, and the largest share of it that a box may cover."""

    width: int
    height: int
    max_share: float


def read(raw: Mapping[str, Any], *, round: str, frame: Frame) -> Submission:
    """The submission. Raises ``RowFault`` with a typed reason for what is broken or breaks the campaign's rules."""
    signed, edited = raw.get("completed_by"), raw.get("updated_by")
    if edited is not None and edited != signed:
        raise RowFault(Reason.FORGED_SUBMISSION, f"signed by account {signed}, entered by account {edited}")
    found = _by_name(raw)
    submission = Submission(
        annotation_id=raw["id"],
        person_id=_person(signed),
        at=str(raw.get("created_at") or ""),
        lead_seconds=raw.get("lead_time"),
        texts={name: _text(found.get(name)) for name in _TEXTS},
        category=_choice(found.get("category")),
        count=_count(found.get("count")),
        boxes=tuple(_box(one, frame) for one in found.get("box", ())),
        verdict=_choice(found.get("verdict")),
        reasons=tuple(_choices(found.get("reason"))),
    )
    if found_wrong := _missing(submission, round):
        raise RowFault(Reason.BREAKS_RULES, "; ".join(found_wrong))
    return submission


def _by_name(raw: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    results = raw.get("result")
    if not isinstance(results, list):
        raise RowFault(Reason.BROKEN_SUBMISSION, f"the result is {type(results).__name__}, not a list")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in results:
        if not isinstance(one, Mapping) or not isinstance(one.get("value"), Mapping):
            raise RowFault(Reason.BROKEN_SUBMISSION, f"a result is no object with a value: {json.dumps(one)[:200]}")
        if one.get("from_name") not in _NAMES:
            raise RowFault(Reason.BROKEN_SUBMISSION, f"a result of {one.get('from_name')!r}, which the form has not")
        found.setdefault(one["from_name"], []).append(one)
    return found


def _person(signed: Any) -> int:
    if not isinstance(signed, int):
        raise RowFault(Reason.BROKEN_SUBMISSION, f"signed by {signed!r}, which is no account")
    return signed


def _text(found: list[Mapping[str, Any]] | None) -> str:
    parts = [part for one in found or () for part in one["value"].get("text") or ()]
    if not all(isinstance(part, str) for part in parts):
        raise RowFault(Reason.BROKEN_SUBMISSION, f"a text field holds {parts!r}")
    return storable("\n".join(parts).strip())


def _choices(found: list[Mapping[str, Any]] | None) -> list[str]:
    return [str(choice) for one in found or () for choice in one["value"].get("choices") or ()]


def _choice(found: list[Mapping[str, Any]] | None) -> str:
    chosen = _choices(found)
    if len(chosen) > 1:
        raise RowFault(Reason.BROKEN_SUBMISSION, f"several choices where one is asked for: {chosen}")
    return chosen[0] if chosen else ""


def _count(found: list[Mapping[str, Any]] | None) -> int | None:
    if not found:
        return None
    number = found[0]["value"].get("number")
    if isinstance(number, bool) or not isinstance(number, int | float) or number != int(number) or number < 0:
        raise RowFault(Reason.BREAKS_RULES, f"the count is {number!r}, not a whole number from 0 on")
    return int(number)


def _box(one: Mapping[str, Any], frame: Frame) -> Box:
    width, height = one.get("original_width") or frame.width, one.get("original_height") or frame.height
    if (width, height) != (frame.width, frame.height):
        evidence = f"drawn on {width}x{height} pixels; the image has {frame.width}x{frame.height}"
        raise RowFault(Reason.FOREIGN_FRAME, evidence)
    if one.get("image_rotation"):
        raise RowFault(Reason.FOREIGN_FRAME, f"drawn on the image turned by {one['image_rotation']} degrees")
    try:
        box, share = to_pixels(one["value"], frame.width, frame.height), share_of(one["value"])
    except ValueError as fault:
        raise RowFault(Reason.BREAKS_RULES, str(fault)) from fault
    if share > frame.max_share * (1 + 1e-9):
        raise RowFault(
            Reason.BREAKS_RULES, f"a box covers {share:.2%} of the image; the limit is {frame.max_share:.0%}"
        )
    return box


def _missing(submission: Submission, round: str) -> list[str]:
    """What the round asks for and the submission does not hold."""
    if round in ("annotate", "rework"):
        return _record_faults(submission)
    found = []
    if submission.verdict not in VERDICTS:
        found.append(f"the verdict is {submission.verdict!r}, not one of {', '.join(VERDICTS)}")
    if round == "cross_check" and not submission.texts["blind_answer"]:
        found.append("the checker's own answer is missing")
    if submission.verdict == "fix":
        found += _record_faults(submission)
    if submission.verdict == "reject" and not submission.reasons:
        found.append("a rejection without a reason")
    return found


def _record_faults(submission: Submission) -> list[str]:
    found = [f"the {name} is empty" for name in ("question", "answer") if not submission.texts[name]]
    if submission.category not in CATEGORIES:
        found.append(f"the category is {submission.category!r}, not one of {', '.join(CATEGORIES)}")
    if not submission.boxes:
        found.append("no box is drawn")
    if submission.category == "quantity" and submission.count is None:
        found.append("the count is missing")
    answer = submission.texts["answer"]
    if submission.category == "quantity" and answer.isdecimal() and submission.count not in (None, int(answer)):
        found.append(f"the answer says {answer}, the count {submission.count}")
    return found
