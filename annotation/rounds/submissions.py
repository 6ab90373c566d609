"""Submissions of the rounds, read and validated again, whatever the page or the server checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from annotation.label_studio.forms import (
    CATEGORIES,
    VERDICTS,
    Results,
    choice_of,
    choices_of,
    names,
    results_by_field,
    share_of,
    signer_of,
    text_of,
    to_pixels,
)
from annotation.label_studio.protocol import Person
from annotation.rounds.journal import Revision, Work
from pipelines.records.geometry import Box
from pipelines.records.reject_reasons import Reason, RowError

CATEGORY_NAMES = names(CATEGORIES)
VERDICT_NAMES = names(VERDICTS)
_TEXTS = ("question", "answer", "blind_answer", "comment")
FIELDS = {*_TEXTS, "box", "category", "count", "verdict", "reason"}


@dataclass(frozen=True, slots=True)
class RecordFields:
    """The content of a record."""

    question: str
    answer: str
    category: str
    count: int | None
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Submission:
    """One person's work on one task."""

    person_id: int
    texts: Mapping[str, str]
    category: str
    count: int | None
    boxes: tuple[Box, ...]
    verdict: str
    reasons: tuple[str, ...]

    @property
    def fields(self) -> RecordFields:
        """The record, if the submission holds one."""
        return RecordFields(self.texts["question"], self.texts["answer"], self.category, self.count, self.boxes)


class ImageRules(NamedTuple):
    """The size of the image, and the largest share of it that a box may cover."""

    width: int
    height: int
    max_share: float


def read_submission(raw: Mapping[str, Any], *, round: str, rules: ImageRules) -> Submission:
    """Raises ``RowError`` with a typed reason for a broken submission, or one that breaks the campaign's rules."""
    person_id, results = signer_of(raw), results_by_field(raw, FIELDS)
    submission = Submission(
        person_id=person_id,
        texts={name: text_of(results.get(name)) for name in _TEXTS},
        category=choice_of(results.get("category")),
        count=_count(results.get("count")),
        boxes=tuple(_box(entry, rules) for entry in results.get("box", ())),
        verdict=choice_of(results.get("verdict")),
        reasons=choices_of(results.get("reason")),
    )
    if errors := _submission_errors(submission, round):
        raise RowError(Reason.BREAKS_RULES, "; ".join(errors))
    return submission


def _count(results: Results | None) -> int | None:
    if not results:
        return None
    number = results[0]["value"].get("number")
    if isinstance(number, bool) or not isinstance(number, int | float) or number != int(number) or number < 0:
        raise RowError(Reason.BREAKS_RULES, f"the count is {number!r}, not a whole number from 0 on")
    return int(number)


def _box(entry: Mapping[str, Any], rules: ImageRules) -> Box:
    width, height = entry.get("original_width") or rules.width, entry.get("original_height") or rules.height
    if (width, height) != (rules.width, rules.height):
        evidence = f"drawn on {width}x{height} pixels; the image has {rules.width}x{rules.height}"
        raise RowError(Reason.FOREIGN_FRAME, evidence)
    if entry.get("image_rotation"):
        raise RowError(Reason.FOREIGN_FRAME, f"drawn on the image turned by {entry['image_rotation']} degrees")
    try:
        box, share = to_pixels(entry["value"], rules.width, rules.height), share_of(entry["value"])
    except ValueError as error:
        raise RowError(Reason.BREAKS_RULES, str(error)) from error
    if share > rules.max_share * (1 + 1e-9):
        raise RowError(
            Reason.BREAKS_RULES, f"a box covers {share:.2%} of the image; the limit is {rules.max_share:.0%}"
        )
    return box


def _submission_errors(submission: Submission, round: str) -> list[str]:
    if round in ("annotate", "rework"):
        return _record_errors(submission)
    errors = []
    if submission.verdict not in VERDICT_NAMES:
        errors.append(f"the verdict is {submission.verdict!r}, not one of {', '.join(VERDICT_NAMES)}")
    if round == "cross_check" and not submission.texts["blind_answer"]:
        errors.append("the checker's own answer is missing")
    if submission.verdict == "fix":
        errors += _record_errors(submission)
    if submission.verdict == "reject" and not submission.reasons:
        errors.append("a rejection without a reason")
    return errors


def _record_errors(submission: Submission) -> list[str]:
    errors = [f"the {name} is empty" for name in ("question", "answer") if not submission.texts[name]]
    if submission.category not in CATEGORY_NAMES:
        errors.append(f"the category is {submission.category!r}, not one of {', '.join(CATEGORY_NAMES)}")
    if not submission.boxes:
        errors.append("no box is drawn")
    if submission.category == "quantity" and submission.count is None:
        errors.append("the count is missing")
    answer = submission.texts["answer"]
    if submission.category == "quantity" and answer.isdecimal() and submission.count not in (None, int(answer)):
        errors.append(f"the answer says {answer}, the count {submission.count}")
    return errors


class InvalidSubmission(NamedTuple):
    """A submission that is not used, and why."""

    round: str
    person: str
    reason: Reason
    evidence: str
    project_id: int
    task_id: int
    annotation_id: int


def invalid_submission(
    work: Work, revision: Revision, error: RowError, people: Mapping[int, Person]
) -> InvalidSubmission:
    """The person is the account that entered the revision."""
    person = email_of(revision.raw.get("updated_by") or revision.raw.get("completed_by"), people)
    location = (work.project_id or 0, revision.task_id, revision.annotation_id)
    return InvalidSubmission(work.demand.round, person, error.reason, error.evidence, *location)


def email_of(person_id: object, people: Mapping[int, Person]) -> str:
    """The e-mail address of an account; its number if it is unknown."""
    person = people.get(person_id) if isinstance(person_id, int) else None
    return person.email if person else f"account {person_id}"
