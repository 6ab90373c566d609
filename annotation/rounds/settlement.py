"""Which submissions of a task count: valid ones of people who may answer it, the first of each, as many as it asks for.

Every other one is invalid, with a typed reason. A submission is read by the terms of its task and by the roles that its
signer had since the task was handed out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from darkroom.annotation.label_studio.forms import ROUND_FORMS
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.campaign import Terms
from darkroom.annotation.rounds.journal import Revision, Work
from darkroom.annotation.rounds.record_state import CHECKING, RecordState
from darkroom.annotation.rounds.submissions import Submission, email_of, invalid_submission, read_submission
from darkroom.pipelines.records.reject_reasons import Reason, RowError


class Counted(NamedTuple):
    """A submission that counts, or a void one: without a submission, with the reason."""

    revision: Revision
    submission: Submission | None
    evidence: str = ""


class Settlement(NamedTuple):
    """What counts of a task."""

    counted: list[Counted]
    """Valid ones; once everybody has answered, also a void one for each that is missing."""
    is_complete: bool
    """Whether the server has no place left on the task."""


@dataclass(frozen=True, slots=True)
class SubmissionReader:
    """Reads the submissions of one campaign's tasks."""

    people: Mapping[int, Person]
    terms: Mapping[str, Terms]
    """By digest."""
    default: Terms
    """For tasks without frozen terms."""

    def terms_of(self, work: Work) -> Terms:
        return self.terms.get(work.terms, self.default)

    def email(self, person_id: object) -> str:
        return email_of(person_id, self.people)

    def read(self, work: Work, revision: Revision, size: tuple[int, int]) -> Submission:
        """Raises ``RowError``."""
        return read_submission(revision.raw, round=work.demand.round, rules=self.terms_of(work).image_rules(*size))

    def settle(
        self, work: Work, state: RecordState, size: tuple[int, int], frozen: Mapping[int, str], n_wanted: int
    ) -> Settlement:
        """The submissions of some work; ``frozen`` are the revisions that later rounds build on, by annotation."""
        valid: dict[int, Counted] = {}
        void: list[Counted] = []
        n_entered = 0
        for revisions in work.annotations:
            revision = frozen_revision(revisions, frozen)
            # a task that was handed out again excludes who answered it before
            if _is_exclusion(revision, {*state.authors, *state.judges, *(valid if n_wanted > 1 else ())}):
                continue
            if revision.raw.get("was_cancelled"):
                state.skipped_by.append(self.email(revision.raw.get("completed_by")))
                continue
            n_entered += 1
            if revision is not revisions[-1]:
                error = RowError(Reason.LATE_EDIT, "changed after the next round had begun; the earlier state counts")
                state.invalid.append(invalid_submission(work, revisions[-1], error, self.people))
            try:
                submission = self.read(work, revision, size)
                self._check_person(submission, revision, work, state)
                _check_first(submission, valid, n_wanted)
            except RowError as error:
                state.invalid.append(invalid_submission(work, revision, error, self.people))
                if error.reason is not Reason.DUPLICATE_SUBMISSION:
                    void.append(Counted(revision, None, error.evidence))
            else:
                valid[submission.person_id] = Counted(revision, submission)
        is_complete = n_entered >= n_wanted
        n_void = n_wanted - len(valid) if is_complete else 0
        return Settlement([*valid.values(), *void[:n_void]], is_complete)

    def _check_person(self, submission: Submission, revision: Revision, work: Work, state: RecordState) -> None:
        person = self.people.get(submission.person_id)
        wanted = ROUND_FORMS[work.demand.round].roles
        roles = revision.roles if revision.roles is not None else tuple(filter(None, [person and person.role]))
        if person is None or not set(wanted) & set(roles):
            actual = f"{person.email} is {' and '.join(roles) or 'without a role'}" if person else "an unknown account"
            raise RowError(Reason.WRONG_PERSON, f"this round is for the role {' or '.join(wanted)}; {actual}")
        if work.demand.round in CHECKING and submission.person_id in state.authors:
            raise RowError(Reason.WRONG_PERSON, f"{person.email} wrote this record and cannot judge it")
        if work.demand.round in CHECKING and submission.person_id in state.judges:
            raise RowError(Reason.WRONG_PERSON, f"{person.email} has judged this record and cannot judge it again")


def frozen_revision(revisions: Sequence[Revision], frozen: Mapping[int, str]) -> Revision:
    """The base of a later round, or the latest revision; ``frozen`` are the digests of bases by annotation."""
    base = frozen.get(revisions[0].annotation_id)
    return next((revision for revision in revisions if revision.digest == base), revisions[-1])


def _check_first(submission: Submission, valid: Mapping[int, Counted], n_wanted: int) -> None:
    """One submission each, and as many as the task asks for."""
    earlier = valid.get(submission.person_id)
    if earlier is None and len(valid) >= n_wanted:
        earlier = next(iter(valid.values()))
    if earlier is not None:
        evidence = f"annotation {earlier.revision.annotation_id} came first"
        raise RowError(Reason.DUPLICATE_SUBMISSION, evidence)


def _is_exclusion(revision: Revision, people: set[int]) -> bool:
    """Whether this is an empty annotation that the import reserved for an excluded annotator."""
    raw = revision.raw
    return raw.get("result") == [] and not raw.get("was_cancelled") and raw.get("completed_by") in people
