"""The plug-in's pure parts; the rest is tested inside of Label Studio (tests/e2e/test_annotation.py)."""

from __future__ import annotations

import pytest

from annotation._plugin.darkroom_studio.validation import find_errors
from tests.annotation.desk import box, choice, record

GATE = {"kind": "annotate", "max_share": 0.05}


def test_a_good_record_passes() -> None:
    assert find_errors(record(), GATE) == []


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (record()[1:], "Draw at least one box around the target object."),
        ([box(width=30, height=30)], "Box 1 covers 9.00% of the image; the limit is 5%."),
        ([box(), box(width=30, height=30)], "Box 2 covers 9.00% of the image; the limit is 5%."),
        ([box(value={"rotation": 12})], "Box 1 is rotated; boxes must be upright."),
        ([box(width=0)], "Box 1 is empty."),
        ([box(value={"width": None})], "Box 1 has no size."),
    ],
)
def test_what_breaks_the_rules_is_said_in_sentences(result: list, said: str) -> None:
    assert find_errors(result, GATE) == [said]


def test_exactly_the_limit_passes() -> None:
    assert find_errors([box(width=25, height=20)], GATE) == []


@pytest.mark.parametrize("kind", ["cross_check", "accept"])
def test_a_rejection_needs_no_box_and_a_fix_does(kind: str) -> None:
    gate = GATE | {"kind": kind}
    assert find_errors([choice("verdict", "reject")], gate) == []
    assert find_errors([choice("verdict", "fix")], gate) == ["Draw at least one box around the target object."]
    assert find_errors([choice("verdict", "reject"), box(width=50, height=50)], gate) != []


@pytest.mark.parametrize("gate", [{}, {"kind": "review"}, {"kind": "another team's"}])
def test_other_tasks_are_left_alone(gate: dict) -> None:
    assert find_errors([box(width=90, height=90)], gate) == []
