"""Versions of a record, with the results of cross-check and acceptance, and the cases that people are measured by."""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from darkroom.annotation._plugin.darkroom_studio.content import WRITING
from darkroom.annotation.rounds.submissions import RecordState, Stage
from darkroom.pipelines.records import AnnotationEvent, FieldChange
from darkroom.pipelines.verification.proportion import Proportion, proportion_of

MEASURES = ("first_pass", "blind", "upheld", "planted_errors")
"""Shares in which people are compared: fields of ``AnnotatorQuality``."""
VersionOutcome = Literal["waiting", "unchanged", "fixed", "rejected"]


class Version(NamedTuple):
    """One version of a record; several people may have checked or accepted it."""

    author: AnnotationEvent
    cross_checks: tuple[AnnotationEvent, ...] = ()
    acceptances: tuple[AnnotationEvent, ...] = ()
    fate: Stage = "waiting"
    has_passed: bool = False
    """Whether the cross-check let it through."""

    @property
    def reject_reasons(self) -> list[tuple[str, str]]:
        if self.fate != "rejected":
            return []
        rejections = (event for event in (*self.cross_checks, *self.acceptances) if event.verdict == "reject")
        return [(event.round, reason) for event in rejections for reason in event.reasons]

    @property
    def outcome(self) -> VersionOutcome:
        """``unchanged``: accepted as the author wrote it, also if a fix was reverted."""
        if self.fate != "accepted":
            return self.fate
        return "fixed" if _differs([_common(self.cross_checks), _common(self.acceptances)]) else "unchanged"

    @property
    def expert_verdict(self) -> str | None:
        """The experts' verdict on the *author's* version, comparable with a checker's; None until they have judged.
        Experts see the record as the checker left it: accepting a fixed record agrees with the fix."""
        if not self.acceptances or self.fate == "waiting":
            return None
        return {"unchanged": "accept", "fixed": "fix"}.get(self.outcome, "reject")


def _common(checks: Sequence[AnnotationEvent]) -> tuple[FieldChange, ...]:
    """The changes that counted: of a round that passed, those of most people."""
    changes = [event.changes for event in checks if event.verdict != "reject"]
    counts = Counter(map(_content, changes))
    return max(changes, key=lambda change: counts[_content(change)], default=())


def _content(changes: Iterable[FieldChange]) -> Hashable:
    """Boxes as a set: their order is only the order of drawing."""
    pairs = ((change.name, change.after) for change in changes)
    return frozenset((name, frozenset(map(tuple, json.loads(to))) if name == "boxes" else to) for name, to in pairs)


def _differs(rounds: Iterable[Iterable[FieldChange]]) -> bool:
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for changes in rounds:
        for change in changes:
            before.setdefault(change.name, change.before)
            after[change.name] = change.after
    return before != after


def versions(state: RecordState) -> Iterator[Version]:
    """All versions of a record, oldest first; void submissions are skipped."""
    current: Version | None = None
    for event in state.history:
        if event.verdict == "void":
            continue
        if event.round in WRITING:
            if current is not None:
                yield current._replace(fate="rejected", has_passed=bool(current.acceptances))
            current = Version(event)
        elif current is not None and event.round == "cross_check":
            current = current._replace(cross_checks=(*current.cross_checks, event))
        elif current is not None:
            current = current._replace(acceptances=(*current.acceptances, event))
    if current is not None:
        has_passed = bool(current.acceptances) or state.round == "accept"
        yield current._replace(fate=_fate(state, current), has_passed=has_passed)


def _fate(state: RecordState, last: Version) -> Stage:
    """The fate of the last version; a record that only void checks ended was not rejected by anybody."""
    if state.stage == "accepted":
        return "accepted"
    judged = last.acceptances if state.round == "accept" else last.cross_checks
    is_rejected = state.stage == "rejected" and bool(judged)
    return "rejected" if is_rejected or (state.stage, state.round) == ("waiting", "rework") else "waiting"


class MeasuredCase(NamedTuple):
    """One outcome of one person's work in one of ``MEASURES``."""

    at: str
    person: str
    measure: str
    is_good: bool


def measured_cases(states: Iterable[RecordState]) -> Iterator[MeasuredCase]:
    for state in states:
        for version in versions(state):
            author = version.author
            if author.attempt == 0 and version.outcome != "waiting":
                yield MeasuredCase(author.at, author.person, "first_pass", version.outcome == "unchanged")
            for check in version.cross_checks if version.expert_verdict else ():
                yield MeasuredCase(check.at, check.person, "upheld", check.verdict == version.expert_verdict)
        for event in state.history:
            if event.verdict != "void" and event.blind_match is not None:
                yield MeasuredCase(event.at, event.person, "blind", event.blind_match)
        for planted in state.planted_checks:
            yield MeasuredCase(planted.at, planted.person, "planted_errors", planted.caught)


def share_of(cases: Iterable[MeasuredCase], measure: str) -> Proportion:
    return proportion_of(case.is_good for case in cases if case.measure == measure)
