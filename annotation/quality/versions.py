"""Versions of a record: what an author submitted, and the results of its cross-check and acceptance."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from annotation.rounds.record_state import WRITING, RecordState
from pipelines.records import AnnotationEvent

VersionOutcome = Literal["waiting", "unchanged", "fixed", "rejected"]


class Version(NamedTuple):
    """One version of a record; None for a check that has not happened yet."""

    item_id: str
    author: AnnotationEvent
    check: AnnotationEvent | None = None
    acceptance: AnnotationEvent | None = None

    @property
    def checks(self) -> tuple[AnnotationEvent, ...]:
        return tuple(event for event in (self.check, self.acceptance) if event is not None)

    @property
    def reject_reasons(self) -> list[str]:
        return [reason for event in self.checks if event.verdict == "reject" for reason in event.reasons]

    @property
    def outcome(self) -> VersionOutcome:
        """``unchanged``: accepted as the author wrote it, also if a fix was reverted."""
        if any(event.verdict == "reject" for event in self.checks):
            return "rejected"
        if self.check is None or self.acceptance is None:
            return "waiting"
        return "fixed" if _differs(self.checks) else "unchanged"

    @property
    def expert_verdict(self) -> str | None:
        """The expert's verdict on the *author's* version, comparable with the checker's; None without an expert.

        An expert sees the record as the checker left it: accepting a fixed record agrees with the fix.
        """
        if self.acceptance is None:
            return None
        return {"unchanged": "accept", "fixed": "fix"}.get(self.outcome, "reject")


def _differs(checks: tuple[AnnotationEvent, ...]) -> bool:
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for event in checks:
        for change in event.changes:
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
                yield current
            current = Version(state.item_id, event)
        elif current is not None and event.round == "cross_check":
            current = current._replace(check=event)
        elif current is not None:
            current = current._replace(acceptance=event)
    if current is not None:
        yield current
