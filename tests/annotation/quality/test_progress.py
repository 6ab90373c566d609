"""What waits, when a campaign ends, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.quality.annotators import payments, with_amounts
from darkroom.annotation.quality.metrics import measure
from darkroom.annotation.quality.progress import WaitingRecords, cost_of, forecast, queues_of
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.submissions import PlantedErrorCheck

PEOPLE = [
    Person(2, "ann", "Ann", "annotator"),
    Person(3, "bo", "Bo", "annotator"),
    Person(4, "cy", "Cy", "checker"),
    Person(5, "eve", "Eve", "expert"),
    Person(6, "gone", "Gone", "expert", is_active=False),
]
RATES = {"annotate": 1.5, "cross_check": 0.5, "accept": 0.25, "rework": 1.0, "record": 2.0, "hour": 4.0}


def settled(event, state, day, *, n=1, stage="accepted"):
    at = f"2026-03-{day:02}T10:00:00Z"
    return [state(replace(event("accept", "eve", "accept"), at=at), stage=stage, round="accept") for _ in range(n)]


def test_what_waits_is_counted_by_round_with_its_oldest_and_who_may_do_it(event, state):
    def written(at):
        return state(event("annotate", "ann", at=at), authors=[2], fields=None)

    queues = list(
        queues_of([written("09:00"), written("08:00"), state(), *settled(event, state, 2)], PEOPLE, Campaign())
    )
    assert queues == [
        WaitingRecords("annotate", 1, "", {"ann": 1, "bo": 1}),
        WaitingRecords("cross_check", 2, "2026-03-02T08:00:00Z", {"ann": 0, "bo": 2, "cy": 2}),
    ]


def test_who_skipped_a_record_or_only_writes_is_not_counted(event, state):
    one = state(event("annotate", "ann"), authors=[2], skipped_by=["bo", "bo"])
    assert next(queues_of([one], PEOPLE, Campaign())).n_open_to == {"ann": 0, "bo": 0, "cy": 1}
    assert next(queues_of([one], PEOPLE, Campaign(annotators_check=False))).n_open_to == {"cy": 1}


def test_a_closed_account_does_nothing(event, state):
    waiting = state(event("annotate", "ann"), event("cross_check", "bo", "accept"))
    assert next(queues_of([waiting], PEOPLE, Campaign())).n_open_to == {"eve": 1}


def test_an_even_pace_ends_on_a_certain_day(event, state):
    states = [one for day in range(1, 11) for one in settled(event, state, day, n=5)] + [state() for _ in range(12)]
    found = forecast(states, "2026-03-11T15:00:00Z")
    assert (found.n_days, found.n_settled, found.n_left, found.per_day, found.interval) == (10, 50, 12, 5, (5, 5))
    assert found.ends == ("2026-03-14",) * 3


def test_days_without_work_count_and_today_and_the_distant_past_do_not(event, state):
    """Ten a day on four of the last fourteen days: Student's t at 13 degrees of freedom is 2.160."""
    old, today = settled(event, state, 1, n=500), settled(event, state, 20, n=500)
    states = [one for day in (6, 7, 13, 14) for one in settled(event, state, day, n=10)]
    found = forecast([*old, *today, *states, *[state() for _ in range(100)]], "2026-03-20T01:00:00Z")
    assert (found.n_days, found.n_settled, found.n_left) == (14, 40, 100)
    mean = 40 / 14
    half = 2.1604 * ((4 * (10 - mean) ** 2 + 10 * mean**2) / 13 / 14) ** 0.5
    assert found.interval == pytest.approx((max(0, mean - half), mean + half), abs=1e-3)
    assert found.ends[0] == (date(2026, 3, 20) + timedelta(days=35)).isoformat()
    assert found.ends[1] < found.ends[0] < found.ends[2]


def test_a_pace_that_may_be_none_has_no_latest_day(event, state):
    found = forecast([*settled(event, state, 5, n=30), *settled(event, state, 1), state()], "2026-03-07T01:00:00Z")
    assert found.interval[0] == 0
    assert found.ends[2] == ""


def test_a_clock_at_the_end_of_time_has_no_later_day(event, state):
    last = [
        state(replace(event("accept", "eve", "accept"), at=f"9999-12-{day}T10:00:00Z"), stage="accepted")
        for day in range(20, 31)
        for _ in range(3)
    ]
    assert forecast([*last, *[state() for _ in range(99)]], "9999-12-31T10:00:00Z").ends == ("", "", "")


@pytest.mark.parametrize(
    ("n", "last", "n_left"),
    [(4, 7, 5), (20, 4, 5), (20, 7, 0)],
    ids=["too few records", "too few days", "nothing left"],
)
def test_too_little_gives_no_forecast(event, state, n, last, n_left):
    states = [*settled(event, state, 1), *settled(event, state, 2, n=n), *[state() for _ in range(n_left)]]
    assert forecast(states, f"2026-03-{last:02}T10:00:00Z") is None
    assert forecast([], "") is None


def test_times_that_nobody_can_read_are_left_out(event, state):
    odd = [state(replace(event("annotate", "ann"), at=at)) for at in ("", "20260302T100000Z", "yesterday", "9999")]
    assert forecast([*odd, *settled(event, state, 2)], "2026-03-09T10:00:00Z") is None
    assert measure(odd, as_of="soon").forecast is None


def test_an_amount_follows_from_the_rows_own_columns(event, state):
    one = state(
        replace(event("annotate", "ann", lead_seconds=900.0), at="2026-03-02T09:00:00Z"),
        replace(event("cross_check", "bo", "accept", lead_seconds=360.0), at="2026-03-02T10:00:00Z"),
        replace(event("accept", "eve", "accept", lead_seconds=36.0), at="2026-03-02T11:00:00Z"),
        planted_checks=[PlantedErrorCheck("moved_box", "bo", True, "2026-03-02T11:00:00Z")],
        stage="accepted",
    )
    rows = list(with_amounts(payments([one], PEOPLE), RATES))
    assert {row["account"]: row["amount"] for row in rows} == {
        "ann": 1.5 + 2.0 + 4.0 * 0.25,
        "bo": 2 * 0.5 + 4.0 * 0.1,
        "eve": 0.25 + 4.0 * 0.01,
    }
    assert [row["amount"] for row in with_amounts(payments([one], PEOPLE), {})] == [""] * 3
    cost = cost_of([one], PEOPLE, Campaign(rates=RATES, currency="USD"))
    assert (cost.currency, cost.so_far, cost.n_submissions, cost.n_settled, cost.in_all) == ("USD", 6.19, 4, 1, None)
    assert cost_of([one], PEOPLE, Campaign()) is None


def test_the_played_campaigns_cost_and_queues_agree_with_a_recount(campaign):
    rules = Campaign(rates={"annotate": 1.5, "rework": 1.0, "cross_check": 0.5, "accept": 0.25, "record": 2.0})
    quality = measure(campaign.states, people=campaign.people, campaign=rules)
    expected = n = 0
    for each in campaign.states:
        valid = [event for event in each.history if event.verdict != "void"]
        n += len(valid) + len(each.planted_checks)
        expected += sum(rules.rates[event.round] for event in valid) + 0.5 * len(each.planted_checks)
        expected += 2.0 * (each.stage == "accepted")
    n_settled = sum(each.stage in ("accepted", "rejected") for each in campaign.states)
    assert (quality.cost.so_far, quality.cost.n_submissions) == (pytest.approx(expected), n)
    assert quality.cost.in_all == pytest.approx(expected / n_settled * 300)
    assert {queue.round: queue.n for queue in quality.queues} == {k: v for k, v in quality.waiting.items() if v}
    for queue in quality.queues:
        waits = [each for each in campaign.states if (each.stage, each.round) == ("waiting", queue.round)]
        assert queue.since == min((each.history[-1].at for each in waits if each.history), default="")


def test_months_of_amounts_add_up_without_rates_by_the_hour(campaign):
    rates = {"annotate": 1.37, "cross_check": 0.41, "record": 0.13}
    whole = sum(row["amount"] for row in with_amounts(payments(campaign.states, campaign.people), rates))
    days = [date(2026, 3, 1) + timedelta(days=n) for n in range(6)]
    parts = [payments(campaign.states, campaign.people, since=day, until=day + timedelta(days=1)) for day in days]
    assert sum(row["amount"] for rows in parts for row in with_amounts(rows, rates)) == pytest.approx(whole)


@pytest.mark.parametrize("rates", [{"annotate": -1}, {"hours": 1}, {"hour": float("inf")}, {"hour": float("nan")}])
def test_rates_that_pay_nothing_sensible_are_refused(rates):
    with pytest.raises(ValueError, match="rates"):
        Campaign(rates=rates)
