"""Whether thought and answer say the same, by the embedded judge's rule."""

from __future__ import annotations

import asyncio

import pytest

from darkroom.pipelines.verification.checks import consistency
from darkroom.pipelines.verification.judges import EmbeddedJudge

COLOURS = ("A. red", "B. dark red", "C. blue", "D. green")


def judged(case):
    return asyncio.run(consistency(case, EmbeddedJudge()))


@pytest.mark.parametrize(
    ("thought", "answer", "choices"),
    [
        ("The sign says STOP.", "STOP", ()),
        ("The sign reads: “Stop”.", "stop", ()),
        ("There are 24 of them.", "24", ()),
        ("That makes 1,200.0 in all.", "1200", ()),
        ("It is blue. That is choice C.", "C", COLOURS),
        ("It is blue.", "C", COLOURS),
        ("So the answer is (C).", "C", COLOURS),
        ("It is dark red.", "B", COLOURS),
        ("It could be red or blue at first sight. The crop settles it. It is green.", "D", COLOURS),
        ("It is not red, nor a blue; it is green.", "D", COLOURS),
        ("It is blue.", "blue", COLOURS),
        ("So the answers are A, C.", "A, C", COLOURS),
        ("They are red and blue.", "A, C", COLOURS),
    ],
)
def test_a_thought_that_ends_in_the_answer_passes(make_case, thought, answer, choices):
    found = judged(make_case(final_thought=thought, answer=answer, choices=choices))
    assert (found.passed, found.score) == (True, 1.0)


@pytest.mark.parametrize(
    ("thought", "answer", "choices"),
    [
        ("", "STOP", ()),
        ("The sign says GO.", "STOP", ()),
        ("The sign does not say STOP, not STOP.", "12", ()),
        ("There are 24 of them.", "2", ()),
        ("STOPPED, it says.", "STOP", ()),
        ("It is blue.", "D", COLOURS),
        ("It is blue. That is choice D.", "C", COLOURS),
        ("It is blue or green.", "C", COLOURS),
        ("It is dark red.", "A", COLOURS),
        ("It is not blue.", "C", COLOURS),
        ("I cannot tell.", "C", COLOURS),
        ("It is blue.", "E", COLOURS),
    ],
)
def test_a_thought_that_says_something_else_fails(make_case, thought, answer, choices):
    found = judged(make_case(final_thought=thought, answer=answer, choices=choices))
    assert (found.passed, found.reason) == (False, "inconsistent")
