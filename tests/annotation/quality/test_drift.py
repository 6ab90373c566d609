"""Figures over time, and who got worse."""

from __future__ import annotations

from dataclasses import replace

from darkroom.annotation.quality.metrics import measure
from darkroom.annotation.quality.outliers import find_drifts, periods
from darkroom.annotation.rounds.submissions import PlantedErrorCheck
from darkroom.pipelines.verification.proportion import Proportion


def checks(state, *caught: bool, person: str = "bo", first_day: int = 1):
    """A check of a planted error a day."""
    planted = [
        PlantedErrorCheck("moved_box", person, is_caught, f"2026-03-{first_day + n:02}T10:00:00Z")
        for n, is_caught in enumerate(caught)
    ]
    return state(planted_checks=planted)


def test_every_day_has_its_figures(event, state):
    written = event("annotate", "ann", at="09:00", lead_seconds=100.0)
    checked = event("cross_check", "bo", "accept", at="10:00", blind_match=True)
    accepted = replace(event("accept", "eve", "accept"), at="2026-03-03T08:00:00Z")
    one = state(
        written, checked, accepted, planted_checks=[PlantedErrorCheck("a", "bo", False, "2026-03-02T11:00:00Z")]
    )
    first, second = periods([one])
    assert (first.start, first.n_submissions, first.writing_seconds) == ("2026-03-02", 2, 100.0)
    assert (first.first_pass, first.blind, first.planted_errors) == (
        Proportion(1, 1),
        Proportion(1, 1),
        Proportion(0, 1),
    )
    assert (second.start, second.n_submissions, second.first_pass) == ("2026-03-03", 1, Proportion(0, 0))


def test_a_long_campaign_is_shown_by_week(state):
    rows = periods([checks(state, *[True] * 25)])
    assert [row.start for row in rows] == ["2026-02-23", "2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23"]
    assert sum(row.planted_errors.of for row in rows) == 25


def test_a_time_that_is_none_is_in_no_period(event, state):
    assert periods([state(replace(event("annotate", "ann"), at="yesterday"))]) == ()


def test_who_catches_less_and_less_is_found(state):
    worse, alike = checks(state, *[True] * 8, *[False] * 6), checks(state, *[True, False] * 7, person="cy")
    better = checks(state, *[False] * 6, *[True] * 8, person="di")
    (found,) = find_drifts([worse, alike, better])
    assert (found.email, found.measure) == ("bo", "planted_errors")
    assert (found.before, found.after) == (Proportion(7, 7), Proportion(1, 7))


def test_few_cases_are_no_drift(state):
    assert find_drifts([checks(state, True, True, False, False)]) == ()


def test_in_a_campaign_whose_people_stay_as_they_are_hardly_anybody_drifts(campaign):
    assert len(find_drifts(campaign.states)) <= 2


def test_sums_over_periods_are_the_campaigns(quality):
    assert sum(row.n_submissions for row in quality.periods) == sum(
        sum(by_round.values()) for by_round in quality.days.values()
    )
    assert sum(row.blind.of for row in quality.periods) == quality.blind.of
    assert sum(row.first_pass.of for row in quality.periods) == quality.first_pass.of
    assert sum(row.planted_errors.of for row in quality.periods) == quality.planted_errors_caught.of


def test_a_category_shows_how_often_checks_disagree_and_with_what(event, state):
    from tests.annotation.conftest import WRITTEN

    moved = event("cross_check", "bo", "fix", changes=[("category", "ocr", "object")])
    one = state(event("annotate", "ann"), moved, event("accept", "eve", "accept"), fields=WRITTEN)
    found = measure([one, one])
    assert found.recategorised == {("ocr", "object"): 2}
    assert [(row.category, row.disputed) for row in found.categories] == [("object", Proportion(2, 4))]
