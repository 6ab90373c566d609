"""The plug-in's pure parts; the rest is tested inside of Label Studio (tests/e2e/test_annotation.py)."""

from __future__ import annotations

import pytest

from annotation._plugin.darkroom_studio.permissions import blind, only_own
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


def test_a_person_sees_nobody_elses_work_or_name() -> None:
    task = {
        "id": 3,
        "annotators": [7, 8],
        "updated_by": [{"user_id": 7}],
        "annotations": [
            {"id": 1, "completed_by": 7, "created_username": "Ann"},
            {"id": 2, "completed_by": {"id": 8, "email": "me"}, "created_username": "me"},
        ],
        "drafts": [{"id": 5, "user": 7}, {"id": 6, "user": 8}],
        "data": {"image": "x"},
    }
    seen = blind({"tasks": [task]}, 8)["tasks"][0]
    assert [one["id"] for one in seen["annotations"]] == [2]
    assert [one["id"] for one in seen["drafts"]] == [6]
    assert "Ann" not in str(seen)
    assert (seen["annotators"], seen["updated_by"], seen["data"]) == ([], [], {"image": "x"})


def test_a_draft_that_is_signed_with_ones_own_address_stays() -> None:
    drafts = {"drafts": [{"id": 5, "user": "ann@example.com"}, {"id": 6, "user": "bob@example.com"}]}
    seen = blind(drafts, 8, email="bob@example.com")
    assert [one["id"] for one in seen["drafts"]] == [6]


def test_of_a_list_of_accounts_ones_own_stays() -> None:
    assert only_own([{"id": 7, "email": "ann@example.com"}, {"id": 8}], 8) == [{"id": 8}]
    assert only_own({"detail": "not found"}, 8) == {"detail": "not found"}
