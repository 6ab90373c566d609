"""Submissions of the rounds, read and validated again, whatever the page or the server checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from darkroom.annotation._plugin.darkroom_studio.content import read_content
from darkroom.annotation.label_studio.forms import signer_of
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.campaign import ImageRules
from darkroom.annotation.rounds.journal_file import Revision, Work
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError, storable


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


def read_submission(raw: Mapping[str, Any], *, round: str, rules: ImageRules) -> Submission:
    """Reads with the gate's own function: what the gate accepts is accepted here.

    Raises ``RowError`` with a typed reason for a broken submission, or one that breaks the rules of its task.
    """
    person_id, content = signer_of(raw), read_content(raw.get("result"), rules.gate(round))
    if content.problems:
        evidence = " ".join(problem.text for problem in content.problems)
        raise RowError(Reason(content.problems[0].reason), evidence)
    return Submission(
        person_id=person_id,
        texts={name: storable(text) for name, text in content.texts.items()},
        category=content.category,
        count=content.count,
        boxes=tuple(Box(*corners) for corners in content.boxes),
        verdict=content.verdict,
        reasons=tuple(map(storable, content.reasons)),
    )


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
