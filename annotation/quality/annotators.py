"""Figures per annotator, for the team lead, and their work in a period, for payment.

Working time is read from submissions: a gap of up to half an hour between two submissions of a person is work. For a
longer gap, and for the first submission, the server's time on the task counts, up to half an hour. A check of a planted
error leaves no event in a record's history; it counts as a submission, and its time lies in the gaps.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from statistics import median
from typing import Any

from darkroom.annotation._plugin.darkroom_studio.access import ROLES
from darkroom.annotation._plugin.darkroom_studio.content import CHECKING, WRITING
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.quality.versions import MEASURES, measured_cases, share_of, versions
from darkroom.annotation.rounds.campaign import Unit
from darkroom.annotation.rounds.submissions import ROLE, ROUNDS, RecordState
from darkroom.pipelines.inspection.pages import spreadsheet_cell
from darkroom.pipelines.records import AnnotationEvent
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.row_files import by_key
from darkroom.pipelines.verification.proportion import Proportion, proportion_of

BREAK_SECONDS = 1800.0
"""A longer gap is a break."""


@dataclass(frozen=True, slots=True)
class AnnotatorQuality:
    """One person's row."""

    email: str
    name: str
    role: str
    submissions: Mapping[str, int]
    """Valid ones by round; checks of planted errors under ``gold``."""
    active_hours: float
    writing_seconds: float | None
    """Median time that the page was open for a record."""
    checking_seconds: float | None
    """The same for a cross-check or an acceptance."""
    first_pass: Proportion
    """Of first versions with finished checks, those accepted as written."""
    fixed: Proportion
    """Of the same, those accepted after a fix; the rest was rejected."""
    reasons: Mapping[str, int]
    """Why this person's records were rejected."""
    blind: Proportion
    upheld: Proportion
    """Of versions that this person checked and experts judged, those with the same verdict."""
    planted_errors: Proportion
    invalid: Mapping[str, int]
    n_blocked: int
    n_skipped: int

    @property
    def n_submissions(self) -> int:
        return sum(self.submissions.values())

    @property
    def per_hour(self) -> float | None:
        return self.n_submissions / self.active_hours if self.active_hours else None


def measure_annotators(
    states: Sequence[RecordState], *, blocked: Iterable[Mapping[str, Any]] = (), people: Iterable[Person] = ()
) -> tuple[AnnotatorQuality, ...]:
    """A row for everybody with activity or in ``people``, by role and address; admins only with activity."""
    events_of = by_key((event.person, event) for state in states for event in state.history)
    written_by = by_key((version.author.person, version) for state in states for version in versions(state))
    cases_of = by_key((case.person, case) for case in measured_cases(states))
    invalid_of = by_key((entry.person, entry.reason.value) for state in states for entry in state.invalid)
    n_skipped = Counter(person for state in states for person in set(state.skipped_by))
    n_blocked = Counter(str(entry["person"]) for entry in blocked if entry["person"])
    accounts = {person.email: person for person in people}
    emails = {*events_of, *cases_of, *invalid_of, *n_skipped, *n_blocked}
    emails |= {email for email, person in accounts.items() if person.role in ROLES}
    rows = []
    for email in emails:
        person, events, written, cases = accounts.get(email), events_of[email], written_by[email], cases_of[email]
        valid = [event for event in events if event.verdict != "void"]
        settled = [v.outcome for v in written if v.author.attempt == 0 and v.outcome != "waiting"]
        by_round, shares = Counter(event.round for event in valid), {name: share_of(cases, name) for name in MEASURES}
        golds = {"gold": n} if (n := shares["planted_errors"].of) else {}
        row = AnnotatorQuality(
            email=email,
            name=(person.name if person else "") or email,
            role=person.role if person else _role(by_round, bool(golds)),
            submissions={name: n for name in ROLE if (n := by_round[name])} | golds,
            active_hours=active_seconds(events) / 3600,
            writing_seconds=median_lead(valid, WRITING),
            checking_seconds=median_lead(valid, CHECKING),
            fixed=proportion_of(outcome == "fixed" for outcome in settled),
            reasons=by_frequency(Counter(reason for version in written for _, reason in version.reject_reasons)),
            **shares,
            invalid=by_frequency(Counter(invalid_of[email])),
            n_blocked=n_blocked[email],
            n_skipped=n_skipped[email],
        )
        rows.append(row)
    return tuple(sorted(rows, key=lambda row: (row.role, row.email)))


def active_seconds(events: Iterable[AnnotationEvent]) -> float:
    """Working time of one person's events (see the module); an event without a valid time counts its page's clock."""
    leads = [(timestamp(event.at), min(event.lead_seconds or 0.0, BREAK_SECONDS)) for event in events]
    total, last = sum(lead for at, lead in leads if at is None), -math.inf
    for at, lead in sorted((at, lead) for at, lead in leads if at is not None):
        total += at - last if at - last <= BREAK_SECONDS else lead
        last = at
    return total


def timestamp(at: str) -> float | None:
    """Seconds since 1970; None for an invalid time."""
    with suppress(ValueError, OverflowError):
        date.fromisoformat(at[:10])  # figures by day use these characters
        return datetime.fromisoformat(at).timestamp()
    return None


def _role(by_round: Mapping[str, int], has_caught: bool) -> str:
    """The roles of the rounds with valid submissions; empty without any."""
    roles = {ROLE[name] for name, n in by_round.items() if n} | ({"annotator"} if has_caught else set())
    return "/".join(sorted(roles))


def median_lead(events: Iterable[AnnotationEvent], rounds: Sequence[str]) -> float | None:
    leads = [event.lead_seconds for event in events if event.round in rounds and event.lead_seconds is not None]
    return median(leads) if leads else None


def by_frequency(counts: Counter[str]) -> dict[str, int]:
    """Most frequent first, ties in alphabetical order."""
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


_FIGURES = ("planted_checks", "submissions", "records_accepted", "active_hours", "amount")
PaymentRow = dict[str, str | int | float]
COLUMNS = ("account", "name", "role", "from", "until", *ROUNDS, *_FIGURES)


def payments(
    states: Sequence[RecordState], people: Iterable[Person], *, since: date | None = None, until: date | None = None
) -> list[PaymentRow]:
    """A row for everybody with work from ``since`` to ``until`` (exclusive; UTC), by address."""
    valid = (event for state in states for event in state.history if event.verdict != "void")
    events_of = by_key((event.person, event) for event in valid if _is_within(event.at, since, until))
    checks = (check for state in states for check in state.planted_checks)
    n_planted = Counter(check.person for check in checks if _is_within(check.at, since, until))
    accepted = [state.history for state in states if state.stage == "accepted"]
    n_accepted = Counter(
        next(event.person for event in reversed(history) if event.round in WRITING)
        for history in accepted
        if _is_within(history[-1].at, since, until)
    )
    accounts = {person.email: person for person in people}
    rows: list[PaymentRow] = []
    for email in sorted({*events_of, *n_planted, *n_accepted}):
        person, by_round = accounts.get(email), Counter(event.round for event in events_of[email])
        rows.append(
            {
                "account": email,
                "name": person.name if person else "",
                "role": person.role if person else "/".join(sorted({ROLE[round] for round in by_round})),
                "from": since.isoformat() if since else "",
                "until": until.isoformat() if until else "",
                **{round: by_round[round] for round in ROUNDS},
                "planted_checks": n_planted[email],
                "submissions": len(events_of[email]) + n_planted[email],
                "records_accepted": n_accepted[email],
                "active_hours": round(active_seconds(events_of[email]) / 3600, 2),
            }
        )
    return rows


def with_amounts(rows: Iterable[PaymentRow], rates: Mapping[Unit, float]) -> Iterator[PaymentRow]:
    """The rows with the pay for what they count; a check of a planted error is paid as a check. Empty without rates."""
    for row in rows:
        counted: dict[str, Any] = {**row, "record": row["records_accepted"], "hour": row["active_hours"]}
        counted["cross_check"] += row["planted_checks"]
        yield row | {"amount": round(sum(rate * counted[unit] for unit, rate in rates.items()), 2) if rates else ""}


def write_payments(rows: Iterable[PaymentRow], path: Path) -> None:
    """UTF-8 with a byte order mark, without which spreadsheets misread names."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows({name: spreadsheet_cell(value) for name, value in row.items()} for row in rows)
    write_whole(path, text.getvalue().encode("utf-8-sig"))


def _is_within(at: str, since: date | None, until: date | None) -> bool:
    """Work without a time belongs to no period, only to everything."""
    first, end = (day.isoformat() if day else "" for day in (since, until))
    return not (first or end) or (bool(at) and first <= at[:10] and (not end or at[:10] < end))
