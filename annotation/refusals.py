"""Submissions that do not count: which, whose, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from annotation.journal import Person, Revision, Work
from pipelines.rejects import Reason, RowFault


class Refused(NamedTuple):
    """A submission that does not count, and why."""

    round: str
    person: str
    reason: Reason
    evidence: str
    project_id: int
    task_id: int
    annotation_id: int


def refusal(work: Work, revision: Revision, fault: RowFault, people: Mapping[int, Person]) -> Refused:
    """The refusal of a revision; whoever entered it last answers for it."""
    person = address(revision.raw.get("updated_by") or revision.raw.get("completed_by"), people)
    where = (work.project_id or 0, revision.task_id, revision.annotation_id)
    return Refused(work.demand.round, person, fault.reason, fault.evidence, *where)


def address(person_id: object, people: Mapping[int, Person]) -> str:
    """The e-mail address of an account; its number where nobody knows it."""
    person = people.get(person_id) if isinstance(person_id, int) else None
    return person.email if person else f"account {person_id}"
