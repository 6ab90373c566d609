"""The rounds that a record goes through, derived from the journal: annotate -> cross-check -> accept, and rework.

    annotate ──> cross_check ──> accept ──> accepted
        ^            │ reject       │ reject
        └── rework <─┴──────────────┘        at most ``max_rework`` times, then the record is rejected

What a later round builds on is frozen when that round is demanded: an edit that comes in after that is refused, as are
a second submission, a forged one, and one by somebody who had the record in hand before. Nothing is stored here;
walking the same journal again gives the same states.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from annotation.journal import Demand, Person, Revision, Work
from annotation.refusals import Refused, address, refusal
from annotation.submissions import Fields, Frame, Submission, read
from pipelines.answers import matches
from pipelines.records import AnnotationEvent, Change
from pipelines.rejects import Reason, RowFault

ROUNDS = ("annotate", "cross_check", "accept", "rework")
ROLE = {"annotate": "annotator", "rework": "annotator", "cross_check": "annotator", "accept": "expert"}
MAX_VOID = 3
"""Submissions of one check that may be void before the record is given up."""
Stage = Literal["waiting", "accepted", "rejected"]


class GoldCheck(NamedTuple):
    """What a checker made of a planted error."""

    error: str
    person: str
    caught: bool


@dataclass(slots=True)
class State:
    """Where a record stands."""

    item_id: str
    stage: Stage = "waiting"
    round: str = "annotate"
    """The round that it waits in, or the one that settled it."""
    reason: str = ""
    """Why it was rejected."""
    fields: Fields | None = None
    attempt: int = 0
    history: list[AnnotationEvent] = field(default_factory=list)
    authors: list[int] = field(default_factory=list)
    judges: list[int] = field(default_factory=list)
    """Who checked or accepted in this attempt."""
    refused: list[Refused] = field(default_factory=list)
    skipped_by: list[str] = field(default_factory=list)
    golds: list[GoldCheck] = field(default_factory=list)
    wanted: Demand | None = None
    """Work that somebody should do and that was not demanded yet."""

    @property
    def seats(self) -> list[int]:
        """Who must not get the task of the round that it waits in: authors never judge, and who rejected rests."""
        if self.round == "cross_check":
            return list(dict.fromkeys(self.authors))
        if self.round == "accept":
            return list(dict.fromkeys([*self.authors, *self.judges]))
        return self.judges[-1:] if self.round == "rework" else []


class Walk:
    """Reads one campaign's journal by its rules."""

    def __init__(self, *, max_share: float, max_rework: int, people: Mapping[int, Person]) -> None:
        self._max_share = max_share
        self._max_rework = max_rework
        self._people = people

    def state(self, item_id: str, size: tuple[int, int], works: Sequence[Work]) -> State:
        """The state of one item; ``size`` is (width, height) of its image, ``works`` all that was demanded of it."""
        frame = Frame(*size, self._max_share)
        state = State(item_id)
        real = {work.demand[:4]: work for work in works if not work.demand.gold}
        frozen = {work.demand.base_annotation: work.demand.base_revision for work in works}
        serial, base = 0, (0, "")
        while state.stage == "waiting":
            work = real.get((state.round, item_id, state.attempt, serial))
            if work is None:
                overlap = 1 + len(state.seats)
                state.wanted = Demand(state.round, item_id, state.attempt, serial, *base, overlap=overlap)
                break
            settled = self._settle(work, state, frame, frozen)
            if settled is None:
                break
            base = (settled.revision.annotation_id, settled.revision.digest)
            serial = self._advance(state, work, settled, serial)
        self._read_golds(state, works, frame)
        return state

    def _settle(self, work: Work, state: State, frame: Frame, frozen: Mapping[int, str]) -> _Settled | None:
        """The submission that counts; None while there is none."""
        counted: _Settled | None = None
        void: _Settled | None = None
        for revisions in work.annotations:
            chosen = _chosen(revisions, frozen)
            if self._is_seat(chosen, state):
                continue
            if chosen.raw.get("was_cancelled"):
                state.skipped_by.append(self._name(chosen.raw.get("completed_by")))
                continue
            if chosen is not revisions[-1]:
                fault = RowFault(Reason.LATE_EDIT, "changed after the next round had begun; the earlier state counts")
                state.refused.append(refusal(work, revisions[-1], fault, self._people))
            try:
                submission = read(chosen.raw, round=work.demand.round, frame=frame)
                self._check_person(submission, work, state)
                if counted is not None:
                    evidence = f"annotation {counted.revision.annotation_id} came first"
                    raise RowFault(Reason.DUPLICATE_SUBMISSION, evidence)
            except RowFault as fault:
                state.refused.append(refusal(work, chosen, fault, self._people))
                if fault.reason is not Reason.DUPLICATE_SUBMISSION:
                    void = void or _Settled(chosen, None, fault.evidence)
            else:
                counted = _Settled(chosen, submission, "")
        return counted or void

    def _check_person(self, submission: Submission, work: Work, state: State) -> None:
        person = self._people.get(submission.person_id)
        wanted = ROLE[work.demand.round]
        if person is None or person.role != wanted:
            found = f"{person.email} is {person.role or 'without a role'}" if person else "an unknown account"
            raise RowFault(Reason.WRONG_PERSON, f"this round is for the role {wanted}; {found}")
        if work.demand.round in ("cross_check", "accept") and submission.person_id in state.authors:
            raise RowFault(Reason.WRONG_PERSON, f"{person.email} wrote this record and cannot judge it")
        if work.demand.round == "accept" and submission.person_id in state.judges:
            raise RowFault(Reason.WRONG_PERSON, f"{person.email} has checked this record and cannot accept it")

    def _advance(self, state: State, work: Work, settled: _Settled, serial: int) -> int:
        """Moves on by what was submitted; returns the next round's serial."""
        submission = settled.submission
        if submission is None:
            return self._void(state, work, settled, serial)
        if state.round in ("annotate", "rework"):
            before, state.fields = state.fields, submission.fields
            state.authors.append(submission.person_id)
            state.judges.clear()
            state.history.append(self._event(work, submission, "", _changes(before, state.fields), None))
            state.round = "cross_check"
            return 0
        self._judge(state, work, submission)
        return 0

    def _judge(self, state: State, work: Work, submission: Submission) -> None:
        assert state.fields is not None, "a record is written before it is judged"
        after = _judged(state.fields, submission)
        changes = _changes(state.fields, after)
        verdict = submission.verdict
        if verdict != "reject":
            verdict = "fix" if changes else "accept"  # an accepted record whose box was moved is a fixed one
        blind = submission.texts["blind_answer"]
        matched = matches(blind, state.fields.answer, ()) if blind else None
        state.history.append(self._event(work, submission, verdict, changes, matched))
        state.judges.append(submission.person_id)
        if verdict == "reject":
            self._send_back(state, f"rejected in {state.round} for {', '.join(submission.reasons)}")
            return
        state.fields = after
        if state.round == "accept":
            state.stage = "accepted"
        else:
            state.round = "accept"

    def _send_back(self, state: State, reason: str) -> None:
        if state.attempt >= self._max_rework:
            state.stage, state.reason = "rejected", reason
            return
        state.attempt += 1
        state.round = "rework"

    def _void(self, state: State, work: Work, settled: _Settled, serial: int) -> int:
        """A task whose only submission does not count is done again: label streams do not serve it any more."""
        person = self._name(settled.revision.raw.get("completed_by"))
        state.history.append(_void_event(work, settled, person))
        if state.round in ("annotate", "rework"):
            self._send_back(state, f"no valid submission: {settled.evidence}")
            return 0
        if serial + 1 >= MAX_VOID:
            state.stage, state.reason = "rejected", f"{MAX_VOID} void submissions in {state.round}"
        return serial + 1

    def _read_golds(self, state: State, works: Sequence[Work], frame: Frame) -> None:
        for work in works:
            if not work.demand.gold:
                continue
            for revisions in work.annotations:
                chosen = revisions[0]  # a checker's first word counts
                if chosen.raw.get("result") == [] or chosen.raw.get("was_cancelled"):
                    continue
                try:
                    submission = read(chosen.raw, round="cross_check", frame=frame)
                except RowFault as fault:
                    state.refused.append(refusal(work, chosen, fault, self._people))
                    continue
                person = self._name(submission.person_id)
                state.golds.append(GoldCheck(work.demand.gold, person, submission.verdict != "accept"))

    def _is_seat(self, revision: Revision, state: State) -> bool:
        """An empty annotation that the import entered for somebody who must not get the task."""
        raw = revision.raw
        is_empty = raw.get("result") == [] and not raw.get("was_cancelled")
        return is_empty and raw.get("completed_by") in (*state.authors, *state.judges)

    def _event(
        self, work: Work, submission: Submission, verdict: str, changes: tuple[Change, ...], matched: bool | None
    ) -> AnnotationEvent:
        return AnnotationEvent(
            round=work.demand.round,
            attempt=work.demand.attempt,
            person=self._name(submission.person_id),
            at=submission.at,
            lead_seconds=submission.lead_seconds,
            verdict=verdict,
            reasons=submission.reasons,
            comment=submission.texts["comment"],
            blind_answer=submission.texts["blind_answer"],
            blind_match=matched,
            changes=changes,
            task_id=work.task_id or 0,
            annotation_id=submission.annotation_id,
        )

    def _name(self, person_id: object) -> str:
        return address(person_id, self._people)


class _Settled(NamedTuple):
    """The submission that settles a piece of work; without one, why it is void."""

    revision: Revision
    submission: Submission | None
    evidence: str


def _chosen(revisions: Sequence[Revision], frozen: Mapping[int, str]) -> Revision:
    """The revision that a later round was built on, or the latest."""
    wanted = frozen.get(revisions[0].annotation_id)
    return next((one for one in revisions if one.digest == wanted), revisions[-1])


def _judged(before: Fields, submission: Submission) -> Fields:
    """The record after a check: a fix replaces it; an acceptance may carry moved boxes."""
    if submission.verdict == "fix":
        return submission.fields
    if submission.verdict == "accept" and submission.boxes:
        return replace(before, boxes=submission.boxes)
    return before


def _changes(before: Fields | None, after: Fields) -> tuple[Change, ...]:
    if before is None:
        return ()
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in Fields.__slots__]
    return tuple(Change(name, _said(old), _said(new)) for name, old, new in pairs if _content(old) != _content(new))


def _content(value: object) -> object:
    """Boxes as a set: their order is the order of drawing."""
    return frozenset(value) if isinstance(value, tuple) else value


def _said(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _void_event(work: Work, settled: _Settled, person: str) -> AnnotationEvent:
    return AnnotationEvent(
        round=work.demand.round,
        attempt=work.demand.attempt,
        person=person,
        at=str(settled.revision.raw.get("created_at") or ""),
        lead_seconds=settled.revision.raw.get("lead_time"),
        verdict="void",
        reasons=(settled.evidence,),
        comment="",
        blind_answer="",
        blind_match=None,
        changes=(),
        task_id=work.task_id or 0,
        annotation_id=settled.revision.annotation_id,
    )
