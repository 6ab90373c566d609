"""The state machine of a record, derived from the journal: annotate -> cross-check -> accept, and rework.

    annotate ──> cross_check ──> accept ──> accepted
        ^            │ reject       │ reject
        └── rework <─┴──────────────┘        at most ``max_rework`` times, then the record is rejected

Several people may judge a record in one round; ``verdicts.py`` says what comes of their verdicts. The bases of a round
are frozen when that round is demanded: later edits are invalid, as are second and forged submissions, and those of
people who worked on the record before (``settlement.py``). Nothing is stored: the same journal gives the same states.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.campaign import Campaign, Terms
from darkroom.annotation.rounds.journal import Demand, Journal, Revision, Work
from darkroom.annotation.rounds.journal_file import frozen_bases
from darkroom.annotation.rounds.record_state import (
    ROUNDS,
    WRITING,
    PlantedErrorCheck,
    RecordState,
    Verdict,
    common_version,
    why_sent_back,
)
from darkroom.annotation.rounds.settlement import Counted, Settlement, SubmissionReader
from darkroom.annotation.rounds.submissions import RecordFields, Submission, invalid_submission
from darkroom.pipelines.records import AnnotationEvent, FieldChange, PoolImage
from darkroom.pipelines.records.answers import matches
from darkroom.pipelines.records.reject_reasons import RowError

MAX_VOID = 3
"""The record is rejected when this many tasks of one check had void submissions."""


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
        self._reader = SubmissionReader(people, terms, Terms(max_share, max_rework))

    def state(self, item_id: str, size: tuple[int, int], works: Sequence[Work]) -> RecordState:
        """The state of one item; ``size`` is (width, height) of its image, ``works`` all its work."""
        state = RecordState(item_id)
        real = {work.demand[:4]: work for work in works if not work.demand.planted_error}
        frozen = frozen_bases(works)
        serial: int | None = 0
        bases: list[Counted] = []
        while state.stage == "waiting" and serial is not None:
            work = real.get((state.round, item_id, state.attempt, serial))
            if work is None:
                state.next_demand = _demand(state, serial, bases)
                break
            if serial == 0:
                state.n_verdicts = self._reader.terms_of(work).n_verdicts(state.round, item_id)
            settlement = self._reader.settle(work, state, size, frozen, state.n_missing)
            bases = [*(bases if serial else []), *settlement.counted]
            first = real[(state.round, item_id, state.attempt, 0)]
            serial = self._advance(state, work, settlement, serial, self._reader.terms_of(first))
        self._check_planted_errors(state, works, size)
        return state

    def _advance(self, state: RecordState, work: Work, settlement: Settlement, serial: int, terms: Terms) -> int | None:
        """Applies what was submitted; returns the serial of the next demand, None while the round waits.

        ``terms`` are those of the round's first task, whose number of verdicts and rule hold for the whole round.
        """
        if state.round in WRITING:
            return self._write(state, work, settlement.counted[0]) if settlement.is_complete else None
        for counted in settlement.counted:
            self._judge(state, work, counted)
        if not state.n_missing:
            self._decide(state, work, terms)
            return 0
        if not settlement.is_complete:
            return None
        # label streams no longer serve a task with its number of submissions, valid or not
        if _n_void_tasks(state) >= MAX_VOID:
            state.stage, state.reason = "rejected", f"{MAX_VOID} void submissions in {state.round}"
        return serial + 1

    def _write(self, state: RecordState, work: Work, counted: Counted) -> int:
        submission = counted.submission
        if submission is None:
            state.history.append(self._event(work, counted, "void"))
            self._send_back(state, work, f"no valid submission: {counted.evidence}")
            return 0
        before, state.fields = state.fields, submission.fields
        state.authors.append(submission.person_id)
        state.judges.clear()
        state.sent_back_by = []
        state.history.append(self._event(work, counted, "", _changes(before, state.fields)))
        state.round = "cross_check"
        return 0

    def _judge(self, state: RecordState, work: Work, counted: Counted) -> None:
        """One verdict on the current version."""
        submission = counted.submission
        if submission is None:
            state.history.append(self._event(work, counted, "void"))
            return
        assert state.fields is not None, "a record is written before it is judged"
        after = _checked(state.fields, submission)
        changes = _changes(state.fields, after)
        verdict = submission.verdict
        if verdict != "reject":
            verdict = "fix" if changes else "accept"  # an acceptance with a moved box is a fix
        blind = submission.texts["blind_answer"]
        matched = matches(blind, state.fields.answer, ()) if blind else None
        state.history.append(self._event(work, counted, verdict, changes, matched))
        state.judges.append(submission.person_id)
        is_rejected = verdict == "reject"
        reasons = submission.reasons if is_rejected else ()
        state.verdicts.append(Verdict(submission.person_id, None if is_rejected else after, reasons))

    def _decide(self, state: RecordState, work: Work, terms: Terms) -> None:
        """Once everybody has judged."""
        verdicts, state.verdicts = state.verdicts, []
        version = common_version(verdicts, terms.rule(state.round))
        if version is None:
            state.sent_back_by = [verdict.person_id for verdict in verdicts]
            self._send_back(state, work, why_sent_back(verdicts, state.round))
            return
        state.fields = version
        if state.round == "accept":
            state.stage = "accepted"
        else:
            state.round = "accept"

    def _send_back(self, state: RecordState, work: Work, reason: str) -> None:
        if state.attempt >= self._reader.terms_of(work).max_rework:
            state.stage, state.reason = "rejected", reason
            return
        state.attempt += 1
        state.round = "rework"

    def _check_planted_errors(self, state: RecordState, works: Sequence[Work], size: tuple[int, int]) -> None:
        for work in works:
            error_kind = work.demand.planted_error
            for revisions in work.annotations if error_kind else ():
                first = revisions[0]  # later edits do not count
                if first.raw.get("result") == [] or first.raw.get("was_cancelled"):
                    continue
                try:
                    submission = self._reader.read(work, first, size)
                except RowError as error:
                    state.invalid.append(invalid_submission(work, first, error, self._reader.people))
                    continue
                person, caught = self._reader.email(submission.person_id), submission.verdict != "accept"
                state.planted_checks.append(PlantedErrorCheck(error_kind, person, caught, _time_of(first)))

    def _event(
        self,
        work: Work,
        counted: Counted,
        verdict: str,
        changes: tuple[FieldChange, ...] = (),
        matched: bool | None = None,
    ) -> AnnotationEvent:
        raw, submission = counted.revision.raw, counted.submission
        return AnnotationEvent(
            round=work.demand.round,
            attempt=work.demand.attempt,
            person=self._reader.email(raw.get("completed_by")),
            at=_time_of(counted.revision),
            lead_seconds=raw.get("lead_time"),
            verdict=verdict,
            reasons=submission.reasons if submission else (counted.evidence,),
            comment=submission.texts["comment"] if submission else "",
            blind_answer=submission.texts["blind_answer"] if submission else "",
            blind_match=matched,
            changes=changes,
            task_id=counted.revision.task_id,
            annotation_id=counted.revision.annotation_id,
        )


def _demand(state: RecordState, serial: int, bases: Sequence[Counted]) -> Demand:
    """The next work; ``Terms.asked`` adds further people to the first task of a round."""
    frozen = [(counted.revision.annotation_id, counted.revision.digest) for counted in bases] or [(0, "")]
    n_wanted = state.n_missing if serial else 1
    return Demand(
        state.round,
        state.item_id,
        state.attempt,
        serial,
        *frozen[0],
        overlap=n_wanted + len(state.excluded),
        n_wanted=n_wanted,
        bases=json.dumps(frozen[1:]) if frozen[1:] else "",
    )


def _n_void_tasks(state: RecordState) -> int:
    """Tasks of the current round with void submissions; second ones of one person are not void."""
    here = (state.round, state.attempt)
    return len({e.task_id for e in state.history if (e.round, e.attempt) == here and e.verdict == "void"})


def _time_of(revision: Revision) -> str:
    return str(revision.raw.get("created_at") or "")


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


class Record(NamedTuple):
    """An image of the pool, the work on it and the state of its record."""

    item: PoolImage
    works: list[Work]
    state: RecordState


def build_state_machine(journal: Journal, campaign: Campaign) -> StateMachine:
    """The state machine with the journal's terms and accounts; the campaign's rules where none are frozen yet."""
    return StateMachine(
        max_share=campaign.max_share,
        max_rework=campaign.max_rework,
        people=journal.people(),
        terms=journal.terms(),
    )


def record_states(
    pool: Iterable[PoolImage], journal: Journal, machine: StateMachine, *, touched: bool = False
) -> Iterator[Record]:
    """Every image of the pool with its work and state, ordered by digest. Memory: the pool and one record.

    ``touched``: the pool is of touched items only.
    """
    works_by_item = journal.works(ROUNDS, touched=touched)
    item_id, works = next(works_by_item, ("", []))
    for item in sorted(pool, key=lambda item: item.image.sha256):
        while item_id and item_id < item.image.sha256:  # an image that is no longer in the pool
            item_id, works = next(works_by_item, ("", []))
        item_works = works if item_id == item.image.sha256 else []
        state = machine.state(item.image.sha256, (item.image.width, item.image.height), item_works)
        yield Record(item, item_works, state)


def current_work(works: Sequence[Work], state: RecordState) -> Work:
    """The work of the round that the record waits for, once it is demanded."""
    return max(
        (work for work in works if not work.demand.planted_error and work.demand.round == state.round),
        key=lambda work: (work.demand.attempt, work.demand.serial),
    )
