"""A campaign's figures: by hand where a hand can count, and as sums that must agree for one played out."""

from __future__ import annotations

import pytest

from darkroom.annotation.quality.metrics import measure
from darkroom.annotation.rounds.submissions import InvalidSubmission, PlantedErrorCheck
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.verification.proportion import Proportion
from tests.annotation.conftest import WRITTEN

BOXES = ("boxes", "[[0, 0, 10, 10]]", "[[5, 0, 15, 10]]")


def test_a_campaign_that_nobody_began_has_no_figures():
    found = measure([])
    assert (found.n_items, found.until, found.verdicts, found.box_iou, found.minutes_per_accepted) == (
        0,
        "",
        None,
        None,
        None,
    )
    assert found.blind.value is None


def test_blind_matches_are_of_those_who_were_asked(event, state):
    one = state(
        event("annotate", "ann"),
        event("cross_check", "bo", "accept", blind_match=True),
        event("accept", "eve", "accept"),
    )
    two = state(event("annotate", "ann"), event("cross_check", "bo", "reject", blind_match=False))
    assert measure([one, two]).blind == Proportion(1, 2)


def test_alpha_takes_checker_and_expert_and_no_author(event, state):
    def judged(check, acceptance):
        return state(event("annotate", "ann"), event("cross_check", "bo", check), event("accept", "eve", acceptance))

    def fixed():
        changes = [("answer", "a", "b")]
        checked = event("cross_check", "bo", "fix", changes=changes)
        return state(event("annotate", "ann"), checked, event("accept", "eve", "accept"))

    found = measure([judged("accept", "accept")] * 6 + [fixed()] * 2 + [judged("accept", "reject")])
    # 18 values: 13 accept, 4 fix, 1 reject; one unit of two values differs
    assert found.verdicts.alpha == pytest.approx(1 - 17 * 2 / (18**2 - 13**2 - 4**2 - 1))
    assert found.confusion == {("accept", "accept"): 6, ("accept", "reject"): 1, ("fix", "fix"): 2}
    assert found.escaped == Proportion(1, 9)


def test_boxes_are_compared_where_a_check_moved_them(event, state):
    one = state(
        event("annotate", "ann"),
        event("cross_check", "bo", "fix", changes=[BOXES]),
        event("accept", "eve", "accept"),
    )
    found = measure([one])
    assert found.box_iou == pytest.approx(1 / 3)
    assert found.boxes_kept == Proportion(1, 2)


def test_a_rework_is_no_check_of_the_boxes(event, state):
    one = state(event("annotate", "ann"), event("rework", "cy", attempt=1, changes=[BOXES]), attempt=1)
    assert (measure([one]).box_iou, measure([one]).n_reworked) == (None, 1)


def test_golds_are_counted_by_error(state):
    one = state(
        planted_checks=[PlantedErrorCheck("moved_box", "bo", True), PlantedErrorCheck("moved_box", "bo", False)]
    )
    two = state(planted_checks=[PlantedErrorCheck("wrong_count", "cy", True)])
    assert measure([one, two]).planted_errors == {"moved_box": Proportion(1, 2), "wrong_count": Proportion(1, 1)}
    assert measure([one, two]).planted_errors_caught == Proportion(2, 3)


def test_items_are_counted_where_they_stand(event, state):
    written, checked = event("annotate", "ann"), event("cross_check", "bo", "accept")
    found = measure(
        [
            state(),
            state(written, round="cross_check"),
            state(written, checked, round="accept"),
            state(written, event("cross_check", "bo", "reject"), round="rework", attempt=1),
            state(written, checked, event("accept", "eve", "accept"), stage="accepted", round="accept"),
            state(written, event("cross_check", "bo", "reject"), stage="rejected", round="cross_check"),
        ]
    )
    assert list(found.funnel.items()) == [("images", 6), ("written", 5), ("cross-checked", 2), ("accepted", 1)]
    assert found.waiting == {"annotate": 1, "cross_check": 1, "accept": 1, "rework": 1}
    assert (found.n_accepted, found.n_rejected, found.n_waiting) == (1, 1, 4)


def test_time_per_accepted_image_takes_what_was_in_vain_along(event, state):
    accepted = state(event("annotate", "ann", lead_seconds=120.0), stage="accepted")
    in_vain = state(event("annotate", "ann", "void", lead_seconds=60.0), event("rework", "bo", lead_seconds=90_000.0))
    assert measure([accepted, in_vain]).minutes_per_accepted == 2 + 1 + 30


def test_reasons_are_told_by_round_most_frequent_first(event, state):
    def rejected(round_, *reasons):
        checks = [event("cross_check", "bo", "accept")] if round_ == "accept" else []
        return state(event("annotate", "ann"), *checks, event(round_, "eve", "reject", reasons=reasons))

    found = measure(
        [rejected("cross_check", "too_easy"), rejected("accept", "bad_box"), rejected("cross_check", "bad_box")]
    )
    assert list(found.reasons.items()) == [
        ("bad_box", {"cross_check": 1, "accept": 1}),
        ("too_easy", {"cross_check": 1, "accept": 0}),
    ]


def test_a_reason_in_rework_of_an_earlier_version_stays_with_its_round(event, state):
    one = state(
        event("annotate", "ann"),
        event("cross_check", "bo", "accept"),
        event("accept", "eve", "reject", reasons=("bad_box",)),
        event("rework", "cy", attempt=1),
        event("cross_check", "bo", "reject", attempt=1, reasons=("too_easy",)),
    )
    assert measure([one]).reasons == {
        "bad_box": {"cross_check": 0, "accept": 1},
        "too_easy": {"cross_check": 1, "accept": 0},
    }


def test_what_was_refused_is_counted_by_reason(state):
    refused = [InvalidSubmission("annotate", "m", Reason.LATE_EDIT, "…", 1, 1, 1)]
    assert measure([state(invalid=refused)]).invalid == {"late_edit": 1}


def test_problems_at_the_gate_are_one_whatever_their_numbers():
    def hit(*problems):
        return {"person": "ann", "task_id": 1, "problems": list(problems), "at": ""}

    texts = [f"Box {n} covers {share} % of the image; the limit is 5 %." for n, share in ((1, 7), (12, "30.25"))]
    found = measure([], blocked=[hit(texts[0], "Draw a box."), hit(texts[1])])
    assert found.blocked == {"Box … covers …% of the image; the limit is …%.": 2, "Draw a box.": 1}


def test_categories_are_those_that_the_record_has_now(event, state):
    accepted = state(event("annotate", "ann"), fields=WRITTEN, stage="accepted")
    found = measure([accepted, state(event("annotate", "ann"), fields=WRITTEN), state()])
    assert [(one.category, one.n_written, one.n_accepted) for one in found.categories] == [("object", 2, 1)]


def test_an_item_is_listed_from_two_people_on_who_skipped_it(state):
    once = state(skipped_by=["ann", "ann"], item_id="a")
    twice = state(skipped_by=["bo", "ann", "bo"], item_id="b")
    assert [(one.item_id, one.people) for one in measure([once, twice]).skipped] == [("b", ("ann", "bo"))]


def test_days_are_of_submissions_that_count(event, state):
    one = state(
        event("annotate", "ann", "void", at="08:00"), event("rework", "ann", at="09:00"), event("rework", "ann")
    )
    assert measure([one]).days == {"2026-03-02": {"annotate": 0, "cross_check": 0, "accept": 0, "rework": 1}}


def test_every_item_of_a_campaign_stands_somewhere(quality):
    assert quality.n_accepted + quality.n_rejected + quality.n_waiting == quality.n_items == 300


def test_no_later_step_has_more_items(quality):
    counts = list(quality.funnel.values())
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == quality.n_accepted > 0


def test_peoples_rows_add_up_to_the_campaign(quality):
    people = quality.people
    assert sum(row.first_pass.of for row in people) == quality.first_pass.of
    assert sum(row.first_pass.n for row in people) == quality.first_pass.n
    assert sum(row.blind.n for row in people) == quality.blind.n
    assert sum(row.planted_errors.of for row in people) == quality.planted_errors_caught.of
    assert sum(sum(row.invalid.values()) for row in people) == sum(quality.invalid.values())
    counted = sum(row.n_submissions - row.submissions.get("gold", 0) for row in people)
    assert counted == sum(sum(by_round.values()) for by_round in quality.days.values())
    reasons = sum(sum(row.reasons.values()) for row in people)
    assert reasons == sum(sum(by.values()) for by in quality.reasons.values())


def test_the_habits_of_a_team_show(quality):
    row = {one.name: one for one in quality.people}
    assert row["Jonas"].planted_errors.n < row["Amara"].planted_errors.n
    assert row["Jonas"].per_hour == max(one.per_hour for one in quality.people)
    assert set(row["Hana"].invalid) == {"duplicate_submission"}
    assert set(row["Liam"].invalid) == {"forged_submission"}
    assert row["Ivo"].n_skipped == max(one.n_skipped for one in quality.people)


def test_the_same_states_give_the_same_figures(campaign, quality):
    assert measure(campaign.states, blocked=campaign.hits, people=campaign.people) == quality
