"""What everybody did, for payment."""

from __future__ import annotations

import csv
import itertools
from dataclasses import replace
from datetime import date
from pathlib import Path

from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.quality.annotators import COLUMNS, payments, write_payments
from darkroom.annotation.rounds.submissions import PlantedErrorCheck

DECEMBER, JANUARY = date(2026, 12, 1), date(2027, 1, 1)


def done(event, state):
    """Written in November, sent back, rewritten by another in December, and accepted on New Year's Eve."""
    return state(
        replace(event("annotate", "ann", lead_seconds=600.0), at="2026-11-30T23:59:00Z"),
        replace(event("cross_check", "bo", "void"), at="2026-12-01T08:00:00Z"),
        replace(event("cross_check", "bo", "reject"), at="2026-12-01T09:00:00Z"),
        replace(event("rework", "cy", attempt=1), at="2026-12-02T09:00:00Z"),
        replace(event("cross_check", "bo", "accept", attempt=1), at="2026-12-02T10:00:00Z"),
        replace(event("accept", "eve", "accept", attempt=1), at="2026-12-31T23:59:59Z"),
        stage="accepted",
        planted_checks=[PlantedErrorCheck("moved_box", "bo", True, "2026-12-02T11:00:00Z")],
    )


def test_a_period_has_its_own_work_and_an_accepted_record_is_its_last_authors(event, state):
    rows = {row["account"]: row for row in payments([done(event, state)], [], since=DECEMBER, until=JANUARY)}
    assert set(rows) == {"bo", "cy", "eve"}
    assert (rows["bo"]["cross_check"], rows["bo"]["planted_checks"], rows["bo"]["submissions"]) == (2, 1, 3)
    assert (rows["cy"]["rework"], rows["cy"]["records_accepted"]) == (1, 1)
    assert (rows["eve"]["accept"], rows["eve"]["records_accepted"]) == (1, 0)


def test_months_add_up(campaign):
    states, people = campaign.states, campaign.people
    whole = payments(states, people)
    days = [date(2026, 3, 2), date(2026, 3, 3), date(2026, 3, 4), date(2026, 3, 5)]
    parts = [row for start, end in itertools.pairwise(days) for row in payments(states, people, since=start, until=end)]
    for column in ("annotate", "rework", "cross_check", "accept", "planted_checks", "submissions", "records_accepted"):
        assert sum(row[column] for row in whole) == sum(row[column] for row in parts), column
    assert sum(row["records_accepted"] for row in whole) == sum(state.stage == "accepted" for state in states)


def test_hours_are_those_of_the_report(campaign, quality):
    hours = {row["account"]: row["active_hours"] for row in payments(campaign.states, campaign.people)}
    assert hours == {row.email: round(row.active_hours, 2) for row in quality.people if row.n_submissions}


def test_a_spreadsheet_reads_names_and_runs_no_formula(event, state, tmp_path: Path):
    people = [Person(2, "ann", "=HYPERLINK(1)", "annotator"), Person(3, "bo", "Bärbel", "annotator")]
    path = tmp_path / "payments.csv"
    write_payments(payments([done(event, state)], people), path)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["name"] for row in rows] == ["'=HYPERLINK(1)", "Bärbel", "", ""]
