"""What each person did and how it held up: the table by which a team lead sees who needs help.

Time is read off submissions: the gap between two of one person's is work unless it is longer than half an hour, in
which case (and for the first) the page's own clock counts, up to half an hour. A gold check is work that leaves no
trace in a record's history; it counts as a submission, and its time lies in the gaps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from annotation.journal import Person
from annotation.rounds import ROLE, State
from annotation.versions import CHECKING, WRITING, Version, versions
from pipelines.records import AnnotationEvent
from pipelines.shares import Share, share_of

BREAK_SECONDS = 1800.0
"""A longer pause is none of the work."""


@dataclass(frozen=True, slots=True)
class PersonQuality:
    """One person's row."""

    email: str
    name: str
    role: str
    submissions: Mapping[str, int]
    """That count, by round; gold checks under ``gold``."""
    active_hours: float
    writing_seconds: float | None
    """Median time that the page was open for a record; None where there is none."""
    checking_seconds: float | None
    """The same for a cross-check or an acceptance."""
    first_pass: Share
    """Of first versions whose checks are done, those accepted as this person wrote them."""
    fixed: Share
    """Of the same, those accepted after somebody mended them; the rest was rejected."""
    reasons: Mapping[str, int]
    """For which this person's records were rejected."""
    blind: Share
    """Blind answers that are the record's answer."""
    upheld: Share
    """Of versions that this person checked and an expert saw, those of which the expert thought the same."""
    golds: Share
    """Planted errors that this person caught."""
    refused: Mapping[str, int]
    """Submissions that do not count, by reason."""
    n_gate_hits: int
    n_skipped: int

    @property
    def n_submissions(self) -> int:
        """All that count."""
        return sum(self.submissions.values())

    @property
    def has_trouble(self) -> bool:
        """Whether something of theirs was rejected or does not count."""
        return bool(self.reasons or self.refused)

    @property
    def per_hour(self) -> float | None:
        """Submissions per active hour; None where no time is known."""
        return self.n_submissions / self.active_hours if self.active_hours else None


def people_of(
    states: Sequence[State], *, hits: Iterable[Mapping[str, Any]] = (), people: Iterable[Person] = ()
) -> tuple[PersonQuality, ...]:
    """A row for everybody who did something or is in ``people``, by role and address; admins only if they worked."""
    work = _Work(states, hits)
    known = {person.email: person for person in people}
    wanted = work.seen | {email for email, person in known.items() if person.role in ROLE.values()}
    rows = [work.row(email, known.get(email)) for email in sorted(wanted)]
    return tuple(sorted(rows, key=lambda row: (row.role, row.email)))


def active_seconds(events: Iterable[AnnotationEvent]) -> float:
    """How long somebody worked, as the module says; what came in at an unknown time counts by the page's clock."""
    found = [(_moment(event.at), min(event.lead_seconds or 0.0, BREAK_SECONDS)) for event in events]
    total = sum(lead for at, lead in found if at is None)
    last = -math.inf
    for at, lead in sorted((at, lead) for at, lead in found if at is not None):
        total += at - last if at - last <= BREAK_SECONDS else lead
        last = at
    return total


def _moment(at: str) -> float | None:
    """Seconds since 1970; None for what is no moment."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None


class _Work:
    """Everything that happened, by who did it."""

    def __init__(self, states: Sequence[State], hits: Iterable[Mapping[str, Any]]) -> None:
        self._events: dict[str, list[AnnotationEvent]] = {}
        self._written: dict[str, list[Version]] = {}
        self._checked: dict[str, list[Version]] = {}
        self._golds: dict[str, list[bool]] = {}
        self._refused: dict[str, Counter[str]] = {}
        self._skipped: Counter[str] = Counter()
        self._hits = Counter(str(hit["person"]) for hit in hits if hit["person"])
        for state in states:
            self._add(state)

    @property
    def seen(self) -> set[str]:
        """Everybody who did something."""
        found = (self._events, self._golds, self._refused, self._skipped, self._hits)
        return {email for part in found for email in part}

    def _add(self, state: State) -> None:
        for event in state.history:
            self._events.setdefault(event.person, []).append(event)
        for version in versions(state):
            self._written.setdefault(version.author.person, []).append(version)
            if version.check is not None:
                self._checked.setdefault(version.check.person, []).append(version)
        for gold in state.golds:
            self._golds.setdefault(gold.person, []).append(gold.caught)
        for refused in state.refused:
            self._refused.setdefault(refused.person, Counter())[refused.reason.value] += 1
        self._skipped.update(set(state.skipped_by))

    def row(self, email: str, person: Person | None) -> PersonQuality:
        """One person's."""
        events = self._events.get(email, [])
        counted = [event for event in events if event.verdict != "void"]
        written, golds = self._written.get(email, []), self._golds.get(email, [])
        first = [version.outcome for version in written if version.author.attempt == 0]
        settled = [outcome for outcome in first if outcome != "waiting"]
        by_round = Counter(event.round for event in counted)
        seen = [version for version in self._checked.get(email, []) if version.check and version.acceptance]
        return PersonQuality(
            email=email,
            name=(person.name if person else "") or email,
            role=person.role if person else _role(by_round, bool(golds)),
            submissions={name: n for name in ROLE if (n := by_round[name])} | ({"gold": len(golds)} if golds else {}),
            active_hours=active_seconds(events) / 3600,
            writing_seconds=_median_lead(counted, WRITING),
            checking_seconds=_median_lead(counted, CHECKING),
            first_pass=share_of(outcome == "unchanged" for outcome in settled),
            fixed=share_of(outcome == "fixed" for outcome in settled),
            reasons=by_frequency(Counter(reason for version in written for reason in reasons_of(version))),
            blind=share_of(event.blind_match for event in counted if event.blind_match is not None),
            upheld=share_of(version.checks[0].verdict == version.expert_verdict for version in seen),
            golds=share_of(golds),
            refused=by_frequency(self._refused.get(email, Counter())),
            n_gate_hits=self._hits[email],
            n_skipped=self._skipped[email],
        )


def reasons_of(version: Version) -> list[str]:
    """For which a version was rejected."""
    return [reason for event in version.checks if event.verdict == "reject" for reason in event.reasons]


def _role(by_round: Mapping[str, int], has_golds: bool) -> str:
    """What the rounds were for that somebody's work counted in; nothing if none did."""
    roles = {ROLE[name] for name, n in by_round.items() if n} | ({"annotator"} if has_golds else set())
    return "/".join(sorted(roles))


def _median_lead(events: Iterable[AnnotationEvent], rounds: Sequence[str]) -> float | None:
    found = [event.lead_seconds for event in events if event.round in rounds and event.lead_seconds is not None]
    return median(found) if found else None


def by_frequency(counts: Counter[str]) -> dict[str, int]:
    """Most frequent first; the alphabet decides between equals."""
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
