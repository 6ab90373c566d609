"""A record's versions: what an author handed in, and what its cross-check and its acceptance made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from annotation.rounds import State
from pipelines.records import AnnotationEvent

WRITING = ("annotate", "rework")
CHECKING = ("cross_check", "accept")
Outcome = Literal["waiting", "unchanged", "fixed", "rejected"]


class Version(NamedTuple):
    """One version of a record; a check that has not happened yet is None."""

    item_id: str
    author: AnnotationEvent
    check: AnnotationEvent | None = None
    acceptance: AnnotationEvent | None = None

    @property
    def outcome(self) -> Outcome:
        """What became of it: ``unchanged`` is accepted as the author wrote it, also if a fix was taken back."""
        if "reject" in (self._said(self.check), self._said(self.acceptance)):
            return "rejected"
        if self.check is None or self.acceptance is None:
            return "waiting"
        return "fixed" if self._differs(self.check, self.acceptance) else "unchanged"

    @property
    def expert_verdict(self) -> str | None:
        """What the expert made of the *author's* version, so that it compares with what the checker made of it.

        An expert sees the record as the checker left it: who accepts what a checker fixed agrees with the fix. None
        without an expert.
        """
        if self.acceptance is None:
            return None
        return {"unchanged": "accept", "fixed": "fix"}.get(self.outcome, "reject")

    @property
    def checks(self) -> tuple[AnnotationEvent, ...]:
        """What was said of it, in the order of the rounds."""
        return tuple(event for event in (self.check, self.acceptance) if event is not None)

    @staticmethod
    def _said(event: AnnotationEvent | None) -> str:
        return event.verdict if event else ""

    @staticmethod
    def _differs(check: AnnotationEvent, acceptance: AnnotationEvent) -> bool:
        before: dict[str, str] = {}
        after: dict[str, str] = {}
        for change in (*check.changes, *acceptance.changes):
            before.setdefault(change.name, change.before)
            after[change.name] = change.after
        return before != after


def versions(state: State) -> Iterator[Version]:
    """All versions of a record, oldest first; what was void is left out."""
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
