"""The state machine of a record, derived from the journal: annotate -> cross-check -> accept, and rework.

    annotate ──> cross_check ──> accept ──> accepted
        ^            │ reject       │ reject
        └── rework <─┴──────────────┘        at most ``max_rework`` times, then the record is rejected

Submissions count that are valid and of people who may answer the task: the first of each, as many as it asks for. Every
other one is invalid, with a typed reason: second and forged ones, those of people who worked on the record before, and
edits after the next round was requested, which freezes the version that it builds on.

Several people may judge a record in one round, each without knowing the others' verdicts. A verdict names a version:
acceptance the record as it is, a fix the corrected one, a rejection none. The record passes in the version that more
than half of the verdicts name (``majority``), or all of them (``unanimity``); without such a version it is sent back.

Nothing is stored: the same journal gives the same states.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from darkroom.annotation._plugin.darkroom_studio.content import CHECKING, WRITING
from darkroom.annotation.label_studio.forms import ROUND_FORMS
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.campaign import Rule
from darkroom.annotation.rounds.journal_file import AnnotationVersion, RecordTask, TaskRequest
from darkroom.annotation.rounds.submissions import (
    Accepted,
    AcceptedSubmissions,
    InvalidSubmission,
    PlantedErrorCheck,
    ReadAnnotation,
    ReadTask,
    RecordFields,
    RecordState,
    Submission,
    Verdict,
    worked_seconds,
)
from darkroom.pipelines.records import AnnotationEvent, FieldChange
from darkroom.pipelines.records.answers import matches
from darkroom.pipelines.records.reject_reasons import Reason, RowError

MAX_VOID = 3
"""The record is rejected when this many tasks of one check had void submissions."""


@dataclass(frozen=True, slots=True)
class StateMachine:
    """Replay of one campaign's journal by its rules."""

    people: Mapping[int, Person]

    def state(self, item_id: str, tasks: Sequence[ReadTask]) -> RecordState:
        state = RecordState(item_id)
        real = {each.task.request[:4]: each for each in tasks if not each.task.request.planted_error}
        serial: int | None = 0
        bases: list[Accepted] = []
        while state.stage == "waiting" and serial is not None:
            read = real.get((state.round, item_id, state.attempt, serial))
            if read is None:
                state.next_request = _next_request(state, serial, bases)
                break
            if serial == 0:
                state.n_verdicts = read.task.request.n_wanted
                state.pre_annotation = state.pre_annotation or read.terms.pre_annotation
            submitted = self._accept(state, read)
            bases = [*(bases if serial else []), *submitted.accepted]
            # the number of verdicts and the rule of a round's first task hold for the whole round
            rule = real[(state.round, item_id, state.attempt, 0)].terms.rule(state.round)
            serial = self._advance(state, read, submitted, serial, rule)
        for each in tasks:
            if each.task.request.planted_error:
                self._check_planted_error(state, each)
        return state

    def _accept(self, state: RecordState, read: ReadTask) -> AcceptedSubmissions:
        valid: dict[int, Accepted] = {}
        void: list[Accepted] = []
        n_wanted, n_entered = state.n_missing, 0
        staff = {number for number, person in self.people.items() if person.role == "admin"}
        for annotation in read.annotations:
            raw = annotation.version.raw
            if raw.get("was_cancelled"):
                state.skipped_by.append(email_of(raw.get("completed_by"), self.people))
                continue
            # empty ones are reserved by the import; a task handed out again excludes who answered it before
            excluded = {*staff, *state.authors, *state.judges, *(valid if n_wanted > 1 else ())}
            if raw.get("result") == [] and raw.get("completed_by") in excluded:
                continue
            n_entered += 1
            if annotation.version is not annotation.latest:
                error = RowError(Reason.LATE_EDIT, "changed after the next round had begun; the earlier state counts")
                state.invalid.append(invalid_submission(read.task, annotation.latest, error, self.people))
            try:
                submission = self._submission(annotation, read, state, valid)
            except RowError as error:
                state.invalid.append(invalid_submission(read.task, annotation.version, error, self.people))
                if error.reason is not Reason.DUPLICATE_SUBMISSION:
                    void.append(Accepted(annotation.version, None, error.evidence))
            else:
                valid[submission.person_id] = Accepted(annotation.version, submission)
        is_complete = n_entered >= n_wanted
        n_void = n_wanted - len(valid) if is_complete else 0
        return AcceptedSubmissions([*valid.values(), *void[:n_void]], is_complete)

    def _submission(
        self, annotation: ReadAnnotation, read: ReadTask, state: RecordState, valid: Mapping[int, Accepted]
    ) -> Submission:
        """The submission if it counts beside the ``valid`` ones. Raises ``RowError``."""
        submission, version, round = annotation.submission, annotation.version, read.task.request.round
        if isinstance(submission, RowError):
            raise submission
        person, allowed = self.people.get(submission.person_id), ROUND_FORMS[round].roles
        roles = version.roles if version.roles is not None else tuple(filter(None, [person and person.role]))
        if person is None or not set(allowed) & set(roles):
            actual = f"{person.email} is {' and '.join(roles) or 'without a role'}" if person else "an unknown account"
            raise RowError(Reason.WRONG_PERSON, f"this round is for the role {' or '.join(allowed)}; {actual}")
        if round in CHECKING and submission.person_id in state.authors:
            raise RowError(Reason.WRONG_PERSON, f"{person.email} wrote this record and cannot judge it")
        if round in CHECKING and submission.person_id in state.judges:
            raise RowError(Reason.WRONG_PERSON, f"{person.email} has judged this record and cannot judge it again")
        earlier = valid.get(submission.person_id)
        if earlier is None and len(valid) >= state.n_missing:
            earlier = next(iter(valid.values()))
        if earlier is not None:
            raise RowError(Reason.DUPLICATE_SUBMISSION, f"annotation {earlier.version.annotation_id} came first")
        return submission

    def _advance(
        self, state: RecordState, read: ReadTask, submitted: AcceptedSubmissions, serial: int, rule: Rule
    ) -> int | None:
        """Apply submissions; returns the serial of the next request, None while the round waits."""
        if state.round in WRITING:
            return self._write(state, read, submitted.accepted[0]) if submitted.is_complete else None
        for accepted in submitted.accepted:
            self._judge(state, read, accepted)
        if not state.n_missing:
            _decide(state, read, rule)
            return 0
        if not submitted.is_complete:
            return None
        # label streams no longer serve a task with its number of submissions, valid or not
        here = (state.round, state.attempt)
        void = {e.task_id for e in state.history if (e.round, e.attempt) == here and e.verdict == "void"}
        if len(void) >= MAX_VOID:  # second submissions of one person are not void
            state.stage, state.reason = "rejected", f"{MAX_VOID} void submissions in {state.round}"
        return serial + 1

    def _write(self, state: RecordState, read: ReadTask, accepted: Accepted) -> int:
        submission = accepted.submission
        if submission is None:
            state.history.append(self._event(read, accepted, "void", (), None))
            _send_back(state, read, f"no valid submission: {accepted.evidence}")
            return 0
        before, state.fields = state.fields, submission.fields
        state.authors.append(submission.person_id)
        state.judges.clear()
        state.sent_back_by = []
        state.history.append(self._event(read, accepted, "", state.fields.changes(before) if before else (), None))
        state.round = "cross_check"
        return 0

    def _judge(self, state: RecordState, read: ReadTask, accepted: Accepted) -> None:
        submission, before = accepted.submission, state.fields
        if submission is None:
            state.history.append(self._event(read, accepted, "void", (), None))
            return
        assert before is not None, "a record is written before it is judged"
        after = submission.fields if submission.verdict == "fix" else before
        if submission.verdict == "accept" and submission.fields.boxes:
            after = replace(before, boxes=submission.fields.boxes)
        changes, verdict = after.changes(before), submission.verdict
        if verdict != "reject":
            verdict = "fix" if changes else "accept"  # an acceptance with a moved box is a fix
        matched = matches(submission.blind_answer, before.answer) if submission.blind_answer else None
        state.history.append(self._event(read, accepted, verdict, changes, matched))
        state.judges.append(submission.person_id)
        is_rejected = verdict == "reject"
        reasons = submission.reasons if is_rejected else ()
        state.verdicts.append(Verdict(submission.person_id, None if is_rejected else after, reasons))

    def _check_planted_error(self, state: RecordState, read: ReadTask) -> None:
        for annotation in read.annotations:
            if annotation.version.raw.get("result") == [] or annotation.version.raw.get("was_cancelled"):
                continue
            submission, at = annotation.submission, str(annotation.version.raw.get("created_at") or "")
            if isinstance(submission, RowError):
                state.invalid.append(invalid_submission(read.task, annotation.version, submission, self.people))
                continue
            person, caught = email_of(submission.person_id, self.people), submission.verdict != "accept"
            state.planted_checks.append(PlantedErrorCheck(read.task.request.planted_error, person, caught, at))

    def _event(
        self, read: ReadTask, entry: Accepted, verdict: str, changes: tuple[FieldChange, ...], matched: bool | None
    ) -> AnnotationEvent:
        raw, submission = entry.version.raw, entry.submission
        return AnnotationEvent(
            round=read.task.request.round,
            attempt=read.task.request.attempt,
            person=email_of(raw.get("completed_by"), self.people),
            at=str(raw.get("created_at") or ""),
            lead_seconds=worked_seconds(raw),
            verdict=verdict,
            reasons=submission.reasons if submission else (entry.evidence,),
            comment=submission.comment if submission else "",
            blind_answer=submission.blind_answer if submission else "",
            blind_match=matched,
            changes=changes,
            task_id=entry.version.task_id,
            annotation_id=entry.version.annotation_id,
        )


def invalid_submission(
    task: RecordTask, version: AnnotationVersion, error: RowError, people: Mapping[int, Person]
) -> InvalidSubmission:
    """The person is the account that entered the version."""
    person = email_of(version.raw.get("updated_by") or version.raw.get("completed_by"), people)
    location = (task.project_id or 0, version.task_id, version.annotation_id)
    return InvalidSubmission(task.request.round, person, error.reason, error.evidence, *location)


def email_of(person_id: object, people: Mapping[int, Person]) -> str:
    person = people.get(person_id) if isinstance(person_id, int) else None
    return person.email if person else f"account {person_id}"


def _decide(state: RecordState, read: ReadTask, rule: Rule) -> None:
    """Accept the record, pass it on or send it back, once everybody has judged."""
    verdicts, state.verdicts = state.verdicts, []
    fields = common_version(verdicts, rule)
    if fields is None:
        state.sent_back_by = [verdict.person_id for verdict in verdicts]
        reasons = dict.fromkeys(reason for verdict in verdicts for reason in verdict.reasons)
        why = f" for {', '.join(reasons)}" if reasons else f": {len(verdicts)} verdicts fix it in different ways"
        _send_back(state, read, f"rejected in {state.round}{why}")
    elif state.round == "accept":
        state.stage, state.fields = "accepted", fields
    else:
        state.round, state.fields = "accept", fields


def common_version(verdicts: Sequence[Verdict], rule: Rule) -> RecordFields | None:
    """The version of the record that enough verdicts name, in any order; None if there is none."""
    n_enough = len(verdicts) if rule == "unanimity" else len(verdicts) // 2 + 1
    versions = [verdict.fields for verdict in verdicts if verdict.fields is not None]
    counts = Counter(fields.content for fields in versions)
    agreed = [fields for fields in versions if counts[fields.content] >= n_enough]
    return min(agreed, key=lambda fields: fields.boxes, default=None)


def _send_back(state: RecordState, read: ReadTask, reason: str) -> None:
    if state.attempt >= read.terms.max_rework:
        state.stage, state.reason = "rejected", reason
        return
    state.attempt += 1
    state.round = "rework"


def _next_request(state: RecordState, serial: int, bases: Sequence[Accepted]) -> TaskRequest:
    """The next request; ``Terms.asked`` adds further people to the first task of a round."""
    frozen = [(base.version.annotation_id, base.version.digest) for base in bases] or [(0, "")]
    n_wanted = state.n_missing if serial else 1
    request = TaskRequest(state.round, state.item_id, state.attempt, serial, *frozen[0])
    others = json.dumps(frozen[1:]) if frozen[1:] else ""
    return request._replace(overlap=n_wanted + len(state.excluded), n_wanted=n_wanted, bases=others)
