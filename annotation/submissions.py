"""One annotation of a record's rounds, read and revalidated: nothing is taken on trust that page or gate checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from annotation import choices
from annotation.choices import names
from annotation.form_fields import Results, by_name, chosen, chosen_one, signer, text
from annotation.geometry import share_of, to_pixels
from pipelines.geometry import Box
from pipelines.rejects import Reason, RowFault

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
    person_id, found = signer(raw), by_name(raw, _NAMES)
    submission = Submission(
        annotation_id=raw["id"],
        person_id=person_id,
        at=str(raw.get("created_at") or ""),
        lead_seconds=raw.get("lead_time"),
        texts={name: text(found.get(name)) for name in _TEXTS},
        category=chosen_one(found.get("category")),
        count=_count(found.get("count")),
        boxes=tuple(_box(one, frame) for one in found.get("box", ())),
        verdict=chosen_one(found.get("verdict")),
        reasons=chosen(found.get("reason")),
    )
    if found_wrong := _missing(submission, round):
        raise RowFault(Reason.BREAKS_RULES, "; ".join(found_wrong))
    return submission


def _count(found: Results | None) -> int | None:
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
