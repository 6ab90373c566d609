"""Agreement of several judges, and what their verdicts say about an author's version."""

from __future__ import annotations

from darkroom.annotation.quality.agreement import alpha, measure_panels
from darkroom.annotation.quality.metrics import measure
from darkroom.annotation.quality.report import figures, render, summary
from darkroom.annotation.quality.versions import versions
from tests.annotation.conftest import WRITTEN

FIX = [("answer", "a heron", "a stork")]
EXPERTS = ("eve", "fay", "gus")


def judged(event, state, *verdicts, checks=("accept",), changes=(), **more):
    """A version with these verdicts of experts; ``changes`` are those of every fix."""
    return state(
        event("annotate", "ann"),
        *(event("cross_check", person, verdict) for person, verdict in zip(("bo", "cy"), checks, strict=False)),
        *(
            event("accept", person, verdict, changes=changes if verdict == "fix" else (), reasons=("bad_box",))
            for person, verdict in zip(EXPERTS, verdicts, strict=False)
        ),
        **{"fields": WRITTEN, "stage": "accepted", "round": "accept", **more},
    )


def test_experts_are_compared_over_all_versions_and_by_category(event, state):
    verdicts = [("accept",) * 3, ("accept", "accept", "reject"), ("fix",) * 3, ("accept", "accept")]
    found = measure_panels([judged(event, state, *row) for row in verdicts])
    assert [(row.round, row.category, row.unanimous.n, row.unanimous.of) for row in found] == [
        ("accept", "", 3, 4),
        ("accept", "object", 3, 4),
    ]
    assert found[0].alpha == alpha(verdicts)


def test_two_checkers_are_a_panel_of_their_own(event, state):
    states = [judged(event, state, "accept", checks=pair) for pair in (("accept", "accept"), ("accept", "reject"))]
    of_checkers = measure_panels(states)[0]
    assert (of_checkers.round, of_checkers.unanimous.n, of_checkers.unanimous.of) == ("cross_check", 1, 2)


def test_one_judge_of_each_version_is_no_panel(event, state):
    assert measure_panels([judged(event, state, "accept")]) == ()


def test_an_overruled_expert_neither_rejects_nor_fixes_the_version(event, state):
    (version,) = versions(judged(event, state, "accept", "reject", "accept"))
    assert (version.outcome, version.expert_verdict, version.reject_reasons) == ("unchanged", "accept", [])
    (version,) = versions(judged(event, state, "accept", "fix", "fix", changes=FIX))
    assert version.outcome == "fixed"
    (version,) = versions(judged(event, state, "accept", "fix", "accept", changes=FIX))
    assert version.outcome == "unchanged"


def test_a_version_is_open_until_the_last_expert_has_judged(event, state):
    (version,) = versions(judged(event, state, "accept", "reject", stage="waiting"))
    assert (version.outcome, version.expert_verdict, version.has_passed) == ("waiting", None, True)


def test_a_record_that_only_void_checks_ended_counts_against_nobody(event, state):
    ended = state(
        event("annotate", "ann"), *[event("cross_check", "bo", "void")] * 3, stage="rejected", round="cross_check"
    )
    (version,) = versions(ended)
    assert version.outcome == "waiting"


def test_the_report_has_a_row_for_each_panel(event, state):
    states = [judged(event, state, *row) for row in (("accept",) * 3, ("accept", "reject", "reject"), ("reject",) * 3)]
    quality = measure(states)
    page = render(quality)
    assert "Several judges of one version" in page
    assert page.count(">experts</th>") == 2
    assert "experts_alpha" in figures(quality)
    assert "agreement among experts (alpha)" in summary(quality)
    alone = measure([judged(event, state, "accept")])
    assert "Several judges" not in render(alone)
    assert "experts_alpha" not in figures(alone)
