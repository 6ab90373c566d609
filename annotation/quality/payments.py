"""What everybody did in a period, for payment: one row per person, as CSV.

    account,name,role,from,until,annotate,rework,cross_check,accept,planted_checks,submissions,records_accepted,active_hours
    ann@example.com,Ann,annotator,2026-11-01,2026-12-01,120,8,64,0,3,195,101,17.25

Only valid submissions count: no duplicates, no void or forged ones. ``records_accepted`` are records whose last version
the person wrote, in the period in which an expert accepted them: periods add up, and no record is counted twice.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.quality.annotators import active_seconds
from darkroom.annotation.rounds.record_state import ROLE, ROUNDS, WRITING, RecordState
from darkroom.pipelines.records import AnnotationEvent
from darkroom.pipelines.storage.atomic_write import write_whole

COLUMNS = (
    *("account", "name", "role", "from", "until", *ROUNDS),
    *("planted_checks", "submissions", "records_accepted", "active_hours"),
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(slots=True)
class _Work:
    events: list[AnnotationEvent] = field(default_factory=list)
    n_planted_checks: int = 0
    n_accepted: int = 0


def payments(
    states: Sequence[RecordState], people: Iterable[Person], *, since: date | None = None, until: date | None = None
) -> list[dict[str, str | int | float]]:
    """A row for everybody with work from ``since`` to ``until`` (exclusive; UTC), by address."""
    work: dict[str, _Work] = {}
    for state in states:
        for event in state.history:
            if event.verdict != "void" and _is_within(event.at, since, until):
                work.setdefault(event.person, _Work()).events.append(event)
        for check in state.planted_checks:
            if _is_within(check.at, since, until):
                work.setdefault(check.person, _Work()).n_planted_checks += 1
        if state.stage == "accepted" and _is_within(state.history[-1].at, since, until):
            author = next(event for event in reversed(state.history) if event.round in WRITING)
            work.setdefault(author.person, _Work()).n_accepted += 1
    accounts = {person.email: person for person in people}
    period = {"from": since.isoformat() if since else "", "until": until.isoformat() if until else ""}
    return [_row(email, work[email], accounts.get(email), period) for email in sorted(work)]


def write_payments(rows: Iterable[dict[str, str | int | float]], path: Path) -> None:
    """UTF-8 with a byte order mark, without which spreadsheets misread names."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    write_whole(path, text.getvalue().encode("utf-8-sig"))


def _row(email: str, work: _Work, person: Person | None, period: dict[str, str]) -> dict[str, str | int | float]:
    by_round = Counter(event.round for event in work.events)
    roles = sorted({ROLE[round] for round in by_round})
    return {
        "account": email,
        "name": person.name if person else "",
        "role": person.role if person else "/".join(roles),
        **period,
        **{round: by_round[round] for round in ROUNDS},
        "planted_checks": work.n_planted_checks,
        "submissions": len(work.events) + work.n_planted_checks,
        "records_accepted": work.n_accepted,
        "active_hours": round(active_seconds(work.events) / 3600, 2),
    }


def _is_within(at: str, since: date | None, until: date | None) -> bool:
    """Work without a time belongs to no period, only to everything."""
    if since is None and until is None:
        return True
    day = at[:10]
    return bool(day) and (since is None or day >= since.isoformat()) and (until is None or day < until.isoformat())


def _cell(value: str | int | float) -> str | int | float:
    """A text that a spreadsheet would take for a formula gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
