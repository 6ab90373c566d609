"""Records with a policy's draft against those without."""

from __future__ import annotations

import math
from random import Random
from statistics import median

import pytest

from darkroom.annotation.quality.metrics import difference, measure, measure_effects, median_of
from darkroom.annotation.quality.report import render
from darkroom.pipelines.verification.proportion import Proportion


def written(event, state, use, *checks, seconds=100.0, **more):
    return state(event("annotate", "ann", lead_seconds=seconds), *checks, pre_annotation=use, **more)


def judged(event, check, acceptance=None, *, matched=True, **more):
    checks = [event("cross_check", "bo", check, blind_match=matched, **more)]
    return checks + ([event("accept", "eve", acceptance)] if acceptance else [])


@pytest.fixture
def halves(event, state):
    """With help: 3 accepted as written, 1 fixed. Without: 1 as written, 1 rejected by a checker, 1 by an expert."""
    fix = {"changes": [("answer", "a", "b")]}
    return [
        *[written(event, state, "shown", *judged(event, "accept", "accept"), seconds=50.0 + n) for n in range(3)],
        written(event, state, "shown", *judged(event, "fix", "accept", matched=False, **fix), seconds=5_000.0),
        written(event, state, "withheld", *judged(event, "accept", "accept"), seconds=200.0),
        written(event, state, "withheld", *judged(event, "reject"), seconds=300.0),
        written(event, state, "withheld", *judged(event, "accept", "reject"), stage="rejected", round="accept"),
        written(event, state, "withheld"),
        written(event, state, "all", *judged(event, "reject")),
        written(event, state, "", *judged(event, "reject")),
    ]


def test_both_parts_are_counted_and_nothing_else(halves):
    effects = {effect.measure: effect for effect in measure_effects(halves)}
    assert effects["first_pass"][1:3] == (Proportion(3, 4), Proportion(1, 3))
    assert effects["rejected"][1:3] == (Proportion(0, 4), Proportion(2, 3))
    assert effects["escaped"][1:3] == (Proportion(0, 4), Proportion(1, 2))
    assert effects["accepted"][1:3] == (Proportion(4, 4), Proportion(1, 2))
    assert effects["blind"][1:3] == (Proportion(3, 4), Proportion(3, 3))
    assert (effects["seconds"].shown.of, effects["seconds"].withheld.of) == (4, 4)
    assert effects["seconds"].difference is None, "too few for an interval"


def test_a_first_version_that_a_rework_replaced_counts_as_the_first(event, state):
    def both(use):
        rework = event("rework", "cy", attempt=1, lead_seconds=9.0)
        later = [event("cross_check", "bo", "accept", attempt=1), event("accept", "eve", "accept", attempt=1)]
        return written(event, state, use, *judged(event, "reject"), rework, *later)

    effects = {effect.measure: effect for effect in measure_effects([both("shown"), both("withheld")])}
    assert (effects["first_pass"].shown, effects["accepted"].shown) == (Proportion(0, 1), Proportion(1, 1))
    assert effects["seconds"].shown.of == 1


def test_there_is_no_comparison_without_both_parts(halves, quality):
    assert measure_effects([state for state in halves if state.pre_annotation != "withheld"]) == ()
    assert quality.pre_annotations == ()
    assert "Help from a model" not in render(quality)


def test_the_difference_of_shares_is_newcombes():
    """Table II of the paper: 56/70 - 48/80, method 10 gives 0.0524 to 0.3339."""
    gap, low, high = difference(Proportion(56, 70), Proportion(48, 80))
    assert (gap, low, high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)


def test_intervals_of_medians_hold_the_median_in_nineteen_of_twenty_samples():
    random, inside, apart = Random(3), 0, 0
    for _ in range(400):
        fast, slow = ([random.lognormvariate(mu, 0.6) for _ in range(40)] for mu in (4, 5))
        low, high = median_of(fast).interval
        inside += low <= math.exp(4) <= high
        _, low, high = difference(median_of(fast), median_of(slow))
        apart += low <= math.exp(4) - math.exp(5) <= high
    assert min(inside, apart) >= 0.95 * 400 - 3 * math.sqrt(400 * 0.05 * 0.95)


def test_a_page_left_open_over_night_counts_half_an_hour(event, state):
    states = [written(event, state, use, seconds=90_000.0) for use in ("shown", "withheld") for _ in range(6)]
    seconds = next(effect for effect in measure_effects(states) if effect.measure == "seconds")
    assert (seconds.shown.value, seconds.shown.interval, seconds.shown.of) == (1800, (1800, 1800), 6)


def test_a_journals_figures_agree_with_an_independent_recount(campaign):
    """Half of the played campaign's images, taken as if they had come with a record."""
    uses = {state.item_id: "shown" if int(state.item_id[0], 16) < 8 else "withheld" for state in campaign.states}
    states = campaign.states
    try:
        for each in states:
            each.pre_annotation = uses[each.item_id]
        effects = {effect.measure: effect for effect in measure(states).pre_annotations}
        for use in ("shown", "withheld"):
            n_settled = n_accepted = n_matched = n_blind = 0
            seconds = []
            for each in states:
                events = [event for event in each.history if event.verdict != "void"]
                if uses[each.item_id] != use:
                    continue
                n_settled += each.stage != "waiting"
                n_accepted += each.stage == "accepted"
                if not events or events[0].round != "annotate":
                    continue
                seconds.append(min(events[0].lead_seconds, 1800))
                first = [event for event in events if event.round == "cross_check" and event.attempt == 0]
                n_blind += len(first)
                n_matched += sum(event.blind_match for event in first)
            assert getattr(effects["accepted"], use) == Proportion(n_accepted, n_settled)
            assert getattr(effects["blind"], use) == Proportion(n_matched, n_blind)
            assert getattr(effects["seconds"], use)[::2] == (median(seconds), len(seconds))
        page = render(measure(states))
        assert "Help from a model" in page
        assert f"n = {effects['blind'].shown.of}<" in page
    finally:
        for each in states:
            each.pre_annotation = ""
