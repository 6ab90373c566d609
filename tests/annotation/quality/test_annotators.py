"""One person's row, from work written down by hand."""

from __future__ import annotations

import pytest

from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.quality.annotators import active_seconds, measure_annotators
from darkroom.annotation.rounds.submissions import InvalidSubmission, PlantedErrorCheck
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.verification.proportion import Proportion


def row(states, email, **more):
    (found,) = [one for one in measure_annotators(states, **more) if one.email == email]
    return found


def test_time_between_submissions_is_work_unless_it_is_a_break(event):
    # 300 s on the page, 10 min, then a break of 3 h and 120 s on the page
    day = [("09:00", 300), ("09:10", 20), ("12:10", 120)]
    events = [event("annotate", "ann", at=at, lead_seconds=lead) for at, lead in day]
    assert active_seconds(events) == 300 + 600 + 120


def test_the_order_of_events_does_not_matter(event):
    events = [event("annotate", "ann", at=at, lead_seconds=60.0) for at in ("09:20", "09:00", "09:05")]
    assert active_seconds(events) == 60 + 1200


def test_a_page_left_open_over_night_counts_half_an_hour(event):
    assert active_seconds([event("annotate", "ann", at="09:00", lead_seconds=60_000.0)]) == 1800


@pytest.mark.parametrize("at", ["", "yesterday"])
def test_work_at_an_unknown_time_counts_by_the_pages_clock(event, at):
    events = [event("annotate", "ann", at="09:00", lead_seconds=100.0)]
    unknown = event("annotate", "ann", lead_seconds=40.0)
    assert (
        active_seconds([*events, type(unknown)(**{n: getattr(unknown, n) for n in unknown.__slots__} | {"at": at})])
        == 140
    )


def test_throughput_is_per_active_hour_golds_included(event, state):
    one = state(*[event("cross_check", "bo", "accept", at=f"09:{minute:02}") for minute in (0, 15, 30)])
    one.planted_checks.append(PlantedErrorCheck("moved_box", "bo", True))
    found = row([one], "bo")
    assert found.submissions == {"cross_check": 3, "gold": 1}
    assert found.per_hour == pytest.approx(4 / 0.5)


def test_throughput_is_unknown_without_any_time(event, state):
    assert row([state(event("annotate", "ann"))], "ann").per_hour is None


def test_first_pass_counts_first_versions_that_are_settled(event, state):
    unchanged = state(event("annotate", "ann"), event("cross_check", "bo", "accept"), event("accept", "eve", "accept"))
    fixed = state(
        event("annotate", "ann"),
        event("cross_check", "bo", "fix", changes=[("answer", "a", "b")]),
        event("accept", "eve", "accept"),
    )
    waiting = state(event("annotate", "ann"), event("cross_check", "bo", "accept"))
    reworked = state(
        event("annotate", "cy"),
        event("cross_check", "bo", "reject", reasons=("bad_box",)),
        event("rework", "ann", attempt=1),
        event("cross_check", "bo", "accept", attempt=1),
        event("accept", "eve", "accept", attempt=1),
    )
    states = [unchanged, fixed, waiting, reworked]
    assert (row(states, "ann").first_pass, row(states, "ann").fixed) == (Proportion(1, 2), Proportion(1, 2))
    assert row(states, "cy").first_pass == Proportion(0, 1)


def test_reasons_go_to_the_author_of_the_rejected_version(event, state):
    one = state(
        event("annotate", "ann"),
        event("cross_check", "bo", "reject", reasons=("bad_box", "too_easy")),
        event("rework", "cy", attempt=1),
        event("cross_check", "bo", "accept", attempt=1),
        event("accept", "eve", "reject", attempt=1, reasons=("ambiguous",)),
    )
    assert row([one], "ann").reasons == {"bad_box": 1, "too_easy": 1}
    assert row([one], "cy").reasons == {"ambiguous": 1}


def test_a_checker_is_upheld_where_the_expert_thinks_the_same(event, state):
    def judged(check, acceptance):
        return state(event("annotate", "ann"), event("cross_check", "bo", check), event("accept", "eve", acceptance))

    assert row([judged("accept", "accept"), judged("accept", "reject")], "bo").upheld == Proportion(1, 2)


def test_median_times_tell_writing_from_checking(event, state):
    one = state(
        event("annotate", "ann", lead_seconds=100.0),
        event("rework", "ann", lead_seconds=300.0),
        event("cross_check", "ann", "accept", lead_seconds=30.0),
        event("cross_check", "ann", "accept"),
    )
    assert (row([one], "ann").writing_seconds, row([one], "ann").checking_seconds) == (200, 30)


def test_what_does_not_count_is_told_by_reason_and_is_no_submission(event, state):
    one = state(event("annotate", "mallory", "void"))
    one.invalid = [InvalidSubmission("annotate", "mallory", Reason.FORGED_SUBMISSION, "…", 1, 1, n) for n in range(2)]
    found = row([one], "mallory")
    assert (found.n_submissions, found.invalid) == (0, {"forged_submission": 2})


def test_gate_hits_skips_and_golds_are_each_persons_own(event, state):
    one = state(event("annotate", "ann"), skipped_by=["ann", "ann", "bo"])
    one.planted_checks = [PlantedErrorCheck("moved_box", "bo", False), PlantedErrorCheck("moved_box", "bo", True)]
    hits = [{"person": "ann", "task_id": 1, "problems": ["no box"], "at": ""}, {"person": "", "problems": [], "at": ""}]
    ann, bo = measure_annotators([one], blocked=hits)
    assert (ann.n_blocked, ann.n_skipped, ann.planted_errors) == (1, 1, Proportion(0, 0))
    assert (bo.n_blocked, bo.n_skipped, bo.planted_errors) == (0, 1, Proportion(1, 2))


def test_a_role_is_the_accounts_or_what_the_rounds_were_for(event, state):
    one = state(event("annotate", "ann"), event("accept", "eve", "accept"))
    assert [(found.email, found.role) for found in measure_annotators([one])] == [
        ("ann", "annotator"),
        ("eve", "expert"),
    ]
    accounts = [
        Person(5, "ann", "Ann A.", "expert"),
        Person(6, "new", "New", "annotator"),
        Person(1, "root", "", "admin"),
    ]
    found = measure_annotators([one], people=accounts)
    assert [(one.email, one.name, one.role) for one in found] == [
        ("new", "New", "annotator"),
        ("ann", "Ann A.", "expert"),
        ("eve", "eve", "expert"),
    ]
