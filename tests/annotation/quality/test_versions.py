"""What became of a version, and what an expert's verdict says about what its author wrote."""

from __future__ import annotations

import pytest

from darkroom.annotation.quality.versions import versions

FIX = [("answer", "a heron", "a stork")]
BACK = [("answer", "a stork", "a heron")]


@pytest.mark.parametrize(
    ("check", "acceptance", "outcome", "expert"),
    [
        (None, None, "waiting", None),
        (("accept", ()), None, "waiting", None),
        (("reject", ()), None, "rejected", None),
        (("accept", ()), ("accept", ()), "unchanged", "accept"),
        (("accept", ()), ("fix", FIX), "fixed", "fix"),
        (("accept", ()), ("reject", ()), "rejected", "reject"),
        (("fix", FIX), ("accept", ()), "fixed", "fix"),
        (("fix", FIX), ("fix", BACK), "unchanged", "accept"),
        (("fix", FIX), ("fix", [("category", "object", "ocr")]), "fixed", "fix"),
        (("fix", FIX), ("reject", ()), "rejected", "reject"),
    ],
)
def test_outcome_and_expert_verdict_are_about_what_the_author_wrote(event, state, check, acceptance, outcome, expert):
    events = [event("annotate", "ann")]
    events += [event("cross_check", "bo", check[0], changes=check[1])] if check else []
    events += [event("accept", "eve", acceptance[0], changes=acceptance[1])] if acceptance else []
    (version,) = versions(state(*events))
    assert (version.outcome, version.expert_verdict) == (outcome, expert)


def test_every_rework_begins_a_version(event, state):
    found = versions(
        state(
            event("annotate", "ann"),
            event("cross_check", "bo", "reject"),
            event("rework", "cy", attempt=1),
            event("cross_check", "di", "accept", attempt=1),
            event("accept", "eve", "accept", attempt=1),
        )
    )
    assert [(one.author.person, one.outcome) for one in found] == [("ann", "rejected"), ("cy", "unchanged")]


def test_what_is_void_is_no_version_and_no_check(event, state):
    found = versions(
        state(
            event("annotate", "ann", "void"),
            event("rework", "cy", attempt=1),
            event("cross_check", "bo", "void", attempt=1),
            event("cross_check", "di", "accept", attempt=1),
        )
    )
    assert [(one.author.person, one.cross_checks[0].person) for one in found] == [("cy", "di")]


def test_an_item_that_nobody_wrote_about_has_no_version(state):
    assert list(versions(state())) == []
