"""The state machine of a record, derived from the journal: annotate -> cross-check -> accept, and rework.

    annotate ──> cross_check ──> accept ──> accepted
        ^            │ reject       │ reject
        └── rework <─┴──────────────┘        at most ``max_rework`` times, then the record is rejected

The base of a round is frozen when that round is demanded: later edits are invalid, as are second and forged
submissions, and submissions by people who worked on the record before. Each submission is judged by the terms of its
task and by the roles that its signer had since then. Nothing is stored: the same journal gives the same states.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, NamedTuple

from annotation.label_studio.forms import ROUND_FORMS
from annotation.label_studio.protocol import Person
from annotation.rounds.journal import Demand, Revision, Work
from annotation.rounds.submissions import (
    InvalidSubmission,
    RecordFields,
    Submission,
    email_of,
    invalid_submission,
    read_submission,
)
from annotation.rounds.terms import Terms
from pipelines.records import AnnotationEvent, FieldChange
from pipelines.records.answers import matches
from pipelines.records.reject_reasons import Reason, RowError

ROUNDS = ("annotate", "cross_check", "accept", "rework")
WRITING, CHECKING = ("annotate", "rework"), ("cross_check", "accept")
ROLE = {round: ROUND_FORMS[round].roles[0] for round in ROUNDS}
MAX_VOID = 3
"""The record is rejected after this many void submissions of one check."""
Stage = Literal["waiting", "accepted", "rejected"]


class PlantedErrorCheck(NamedTuple):
    """A checker's result on a planted error."""

    error: str
    person: str
    caught: bool
    at: str = ""
    """When, as in ``AnnotationEvent``."""


@dataclass(slots=True)
class RecordState:
    """The state of a record."""

    item_id: str
    stage: Stage = "waiting"
    round: str = "annotate"
    """The round it waits for, or the one that settled it."""
    reason: str = ""
    """Why it was rejected."""
    fields: RecordFields | None = None
    attempt: int = 0
    history: list[AnnotationEvent] = field(default_factory=list)
    authors: list[int] = field(default_factory=list)
    judges: list[int] = field(default_factory=list)
    """Who checked or accepted in this attempt."""
    invalid: list[InvalidSubmission] = field(default_factory=list)
    skipped_by: list[str] = field(default_factory=list)
    planted_checks: list[PlantedErrorCheck] = field(default_factory=list)
    next_demand: Demand | None = None
    """The next work, if it was not demanded yet."""

    @property
    def excluded(self) -> list[int]:
        """Accounts that must not get the next task: authors never judge, and the last rejecter does not rework."""
        if self.round == "cross_check":
            return list(dict.fromkeys(self.authors))
        if self.round == "accept":
            return list(dict.fromkeys([*self.authors, *self.judges]))
        return self.judges[-1:] if self.round == "rework" else []


class StateMachine:
    """Replays one campaign's journal by its rules."""

    def __init__(
        self,
        *,
        max_share: float,
        max_rework: int,
        people: Mapping[int, Person],
        terms: Mapping[str, Terms] = MappingProxyType({}),
    ) -> None:
        """``max_share`` and ``max_rework`` are for tasks without frozen ``terms`` (by digest)."""
        self._default = Terms(max_share, max_rework)
        self._terms = terms
        self._people = people

    def state(self, item_id: str, size: tuple[int, int], works: Sequence[Work]) -> RecordState:
        """The state of one item; ``size`` is (width, height) of its image, ``works`` all its work."""
        state = RecordState(item_id)
        real = {work.demand[:4]: work for work in works if not work.demand.planted_error}
        frozen = {work.demand.base_annotation: work.demand.base_revision for work in works}
        serial, base = 0, (0, "")
        while state.stage == "waiting":
            work = real.get((state.round, item_id, state.attempt, serial))
            if work is None:
                overlap = 1 + len(state.excluded)
                state.next_demand = Demand(state.round, item_id, state.attempt, serial, *base, overlap=overlap)
                break
            settled = self._settle(work, state, size, frozen)
            if settled is None:
                break
            base = (settled.revision.annotation_id, settled.revision.digest)
            serial = self._advance(state, work, settled, serial)
        self._check_planted_errors(state, works, size)
        return state

    def _terms_of(self, work: Work) -> Terms:
        return self._terms.get(work.terms, self._default)

    def _read(self, work: Work, revision: Revision, size: tuple[int, int]) -> Submission:
        return read_submission(revision.raw, round=work.demand.round, rules=self._terms_of(work).image_rules(*size))

    def _settle(
        self, work: Work, state: RecordState, size: tuple[int, int], frozen: Mapping[int, str]
    ) -> _Settled | None:
        """The valid submission of some work, or a void one; None without any."""
        valid: _Settled | None = None
        void: _Settled | None = None
        for revisions in work.annotations:
            revision = frozen_revision(revisions, frozen)
            if _is_exclusion(revision, state):
                continue
            if revision.raw.get("was_cancelled"):
                state.skipped_by.append(self._email(revision.raw.get("completed_by")))
                continue
            if revision is not revisions[-1]:
                error = RowError(Reason.LATE_EDIT, "changed after the next round had begun; the earlier state counts")
                state.invalid.append(invalid_submission(work, revisions[-1], error, self._people))
            try:
                submission = self._read(work, revision, size)
                self._check_person(submission, revision, work, state)
                if valid is not None:
                    evidence = f"annotation {valid.revision.annotation_id} came first"
                    raise RowError(Reason.DUPLICATE_SUBMISSION, evidence)
            except RowError as error:
                state.invalid.append(invalid_submission(work, revision, error, self._people))
                if error.reason is not Reason.DUPLICATE_SUBMISSION:
                    void = void or _Settled(revision, None, error.evidence)
            else:
                valid = _Settled(revision, submission, "")
        return valid or void

    def _check_person(self, submission: Submission, revision: Revision, work: Work, state: RecordState) -> None:
        person = self._people.get(submission.person_id)
        role = ROLE[work.demand.round]
        roles = revision.roles if revision.roles is not None else tuple(filter(None, [person and person.role]))
        if person is None or role not in roles:
            actual = f"{person.email} is {' and '.join(roles) or 'without a role'}" if person else "an unknown account"
            raise RowError(Reason.WRONG_PERSON, f"this round is for the role {role}; {actual}")
        if work.demand.round in CHECKING and submission.person_id in state.authors:
            raise RowError(Reason.WRONG_PERSON, f"{person.email} wrote this record and cannot judge it")
        if work.demand.round == "accept" and submission.person_id in state.judges:
            raise RowError(Reason.WRONG_PERSON, f"{person.email} has checked this record and cannot accept it")

    def _advance(self, state: RecordState, work: Work, settled: _Settled, serial: int) -> int:
        """Applies a submission; returns the serial of the next demand."""
        submission = settled.submission
        if submission is None:
            return self._void(state, work, settled, serial)
        if state.round in WRITING:
            before, state.fields = state.fields, submission.fields
            state.authors.append(submission.person_id)
            state.judges.clear()
            state.history.append(self._event(work, settled, "", _changes(before, state.fields)))
            state.round = "cross_check"
        else:
            self._apply_check(state, work, settled, submission)
        return 0

    def _apply_check(self, state: RecordState, work: Work, settled: _Settled, submission: Submission) -> None:
        assert state.fields is not None, "a record is written before it is judged"
        after = _checked(state.fields, submission)
        changes = _changes(state.fields, after)
        verdict = submission.verdict
        if verdict != "reject":
            verdict = "fix" if changes else "accept"  # an acceptance with a moved box is a fix
        blind = submission.texts["blind_answer"]
        matched = matches(blind, state.fields.answer, ()) if blind else None
        state.history.append(self._event(work, settled, verdict, changes, matched))
        state.judges.append(submission.person_id)
        if verdict == "reject":
            self._send_back(state, work, f"rejected in {state.round} for {', '.join(submission.reasons)}")
            return
        state.fields = after
        if state.round == "accept":
            state.stage = "accepted"
        else:
            state.round = "accept"

    def _send_back(self, state: RecordState, work: Work, reason: str) -> None:
        if state.attempt >= self._terms_of(work).max_rework:
            state.stage, state.reason = "rejected", reason
            return
        state.attempt += 1
        state.round = "rework"

    def _void(self, state: RecordState, work: Work, settled: _Settled, serial: int) -> int:
        """Requests the work again: label streams no longer serve a task with a submission, valid or not."""
        state.history.append(self._event(work, settled, "void"))
        if state.round in WRITING:
            self._send_back(state, work, f"no valid submission: {settled.evidence}")
            return 0
        if serial + 1 >= MAX_VOID:
            state.stage, state.reason = "rejected", f"{MAX_VOID} void submissions in {state.round}"
        return serial + 1

    def _check_planted_errors(self, state: RecordState, works: Sequence[Work], size: tuple[int, int]) -> None:
        for work in works:
            error_kind = work.demand.planted_error
            for revisions in work.annotations if error_kind else ():
                first = revisions[0]  # later edits do not count
                if first.raw.get("result") == [] or first.raw.get("was_cancelled"):
                    continue
                try:
                    submission = self._read(work, first, size)
                except RowError as error:
                    state.invalid.append(invalid_submission(work, first, error, self._people))
                    continue
                person, caught = self._email(submission.person_id), submission.verdict != "accept"
                state.planted_checks.append(PlantedErrorCheck(error_kind, person, caught, _time_of(first)))

    def _event(
        self,
        work: Work,
        settled: _Settled,
        verdict: str,
        changes: tuple[FieldChange, ...] = (),
        matched: bool | None = None,
    ) -> AnnotationEvent:
        raw, submission = settled.revision.raw, settled.submission
        return AnnotationEvent(
            round=work.demand.round,
            attempt=work.demand.attempt,
            person=self._email(raw.get("completed_by")),
            at=_time_of(settled.revision),
            lead_seconds=raw.get("lead_time"),
            verdict=verdict,
            reasons=submission.reasons if submission else (settled.evidence,),
            comment=submission.texts["comment"] if submission else "",
            blind_answer=submission.texts["blind_answer"] if submission else "",
            blind_match=matched,
            changes=changes,
            task_id=settled.revision.task_id,
            annotation_id=settled.revision.annotation_id,
        )

    def _email(self, person_id: object) -> str:
        return email_of(person_id, self._people)


class _Settled(NamedTuple):
    """The submission that settles some work; None for a void one, with the reason."""

    revision: Revision
    submission: Submission | None
    evidence: str


def frozen_revision(revisions: Sequence[Revision], frozen: Mapping[int, str]) -> Revision:
    """The base of a later round, or the latest revision; ``frozen`` are the digests of bases by annotation."""
    base = frozen.get(revisions[0].annotation_id)
    return next((revision for revision in revisions if revision.digest == base), revisions[-1])


def _time_of(revision: Revision) -> str:
    return str(revision.raw.get("created_at") or "")


def _is_exclusion(revision: Revision, state: RecordState) -> bool:
    """Whether this is an empty annotation that the import reserved for an excluded annotator."""
    raw = revision.raw
    is_empty = raw.get("result") == [] and not raw.get("was_cancelled")
    return is_empty and raw.get("completed_by") in (*state.authors, *state.judges)


def _checked(before: RecordFields, submission: Submission) -> RecordFields:
    """The record after a check: a fix replaces it; an acceptance may move boxes."""
    if submission.verdict == "fix":
        return submission.fields
    if submission.verdict == "accept" and submission.boxes:
        return replace(before, boxes=submission.boxes)
    return before


def _changes(before: RecordFields | None, after: RecordFields) -> tuple[FieldChange, ...]:
    if before is None:
        return ()
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in RecordFields.__slots__]
    return tuple(
        FieldChange(name, _as_text(old), _as_text(new)) for name, old, new in pairs if _content(old) != _content(new)
    )


def _content(value: object) -> object:
    """Boxes as a set: their order is only the order of drawing."""
    return frozenset(value) if isinstance(value, tuple) else value


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
