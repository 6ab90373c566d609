"""Planted errors are wrong, valid by the rules of submissions, and always the same for a seed."""

from __future__ import annotations

from dataclasses import fields as names_of, replace

import pytest
from hypothesis import given, strategies as st

from darkroom.annotation.rounds.campaign import CATEGORY_NAMES, Terms, is_selected
from darkroom.annotation.rounds.planted_errors import ERRORS, plant
from darkroom.annotation.rounds.submissions import RecordFields, read_submission
from darkroom.pipelines.records.answers import matches
from darkroom.pipelines.records.geometry import Box
from tests.annotation.simulation import raw_record

SIZE = (4000, 3000)
SIGN = RecordFields("What is on the sign?", "EXIT 27", "ocr", None, (Box(100, 100, 200, 160),))
BIRDS = RecordFields(
    "How many birds?", "3", "quantity", 3, (Box(10, 10, 40, 30), Box(60, 10, 90, 30), Box(2000, 9, 2040, 40))
)
BOXES = st.builds(
    lambda x, y, width, height: Box(x, y, x + width, y + height),
    st.integers(0, 3400),
    st.integers(0, 2400),
    st.integers(4, 600),
    st.integers(4, 600),
)
ANSWERS = st.sampled_from(["EXIT 27", "red", "on the left", "Yes", "a blue heron", "Öl", "12.5 %", "Ω", "UPPER deck"])


@st.composite
def records(draw):
    category = draw(st.sampled_from(CATEGORY_NAMES))
    boxes = tuple(draw(st.lists(BOXES, min_size=1, max_size=4)))
    if category != "quantity":
        return RecordFields("Which one?", draw(ANSWERS), category, None, boxes)
    count = draw(st.integers(0, 40))
    return RecordFields("How many?", draw(st.sampled_from([str(count), f"{count} birds"])), category, count, boxes)


@given(records(), st.integers())
def test_a_planted_record_is_valid_and_differs_in_what_it_says_only(record, seed):
    found = plant(record, SIZE, seed=seed)
    if found is None:
        return
    submission = read_submission(raw_record(found.fields, SIZE), Terms(0.05, 2).gate("annotate", SIZE))
    assert submission.fields == found.fields
    changed = {
        one.name for one in names_of(RecordFields) if getattr(record, one.name) != getattr(found.fields, one.name)
    }
    allowed = {
        "wrong_answer": {"answer"},
        "moved_box": {"boxes"},
        "wrong_category": {"category", "count"},
        "wrong_count": {"answer", "count"},
    }
    assert changed
    assert changed <= allowed[found.kind]


@given(records(), st.integers())
def test_the_same_seed_plants_the_same_error(record, seed):
    first = plant(record, SIZE, seed=seed)
    assert first == plant(record, SIZE, seed=seed)


@given(records(), st.integers())
def test_a_wrong_answer_never_matches_the_right_one(record, seed):
    found = plant(record, SIZE, seed=seed, errors=["wrong_answer"])
    assert found is None or not matches(found.fields.answer, record.answer)


@given(records(), st.integers())
def test_a_moved_box_keeps_its_size_and_leaves_every_target(record, seed):
    found = plant(record, SIZE, seed=seed, errors=["moved_box"])
    assert found is not None
    (moved,) = set(found.fields.boxes) - set(record.boxes)
    (place,) = [n for n, box in enumerate(found.fields.boxes) if box == moved]
    assert (moved.width, moved.height) == (record.boxes[place].width, record.boxes[place].height)
    assert moved.fits(*SIZE)
    for box in record.boxes:
        common = moved.intersection(box)
        assert common.width <= 0 or common.height <= 0


@given(records(), st.integers())
def test_a_wrong_category_is_another_one(record, seed):
    found = plant(record, SIZE, seed=seed, errors=["wrong_category"])
    assert found.fields.category in set(CATEGORY_NAMES) - {record.category, "quantity"}


@pytest.mark.parametrize(
    ("answer", "count"), [("3", 3), ("three", 3), ("Three birds", 3), ("there are 3.", 3), ("0", 0)]
)
def test_a_wrong_count_is_said_in_the_answer_too(answer, count):
    record = RecordFields("How many?", answer, "quantity", count, BIRDS.boxes)
    found = plant(record, SIZE, seed=1, errors=["wrong_count"]).fields
    assert found.count != count
    assert found.answer != answer


def test_a_number_inside_another_is_not_recounted():
    record = RecordFields("How many?", "3 of 13", "quantity", 3, BIRDS.boxes)
    found = plant(record, SIZE, seed=1, errors=["wrong_count"]).fields
    assert found.answer == f"{found.count} of 13"


@pytest.mark.parametrize(
    ("right", "wrong"), [("on the Left", "on the Right"), ("NO", "YES"), ("lower shelf", "upper shelf")]
)
def test_opposites_become_each_other(right, wrong):
    record = replace(SIGN, answer=right, category="location")
    assert plant(record, SIZE, seed=0, errors=["wrong_answer"]).fields.answer == wrong


def test_a_colour_becomes_another_and_its_shade_stays():
    record = replace(SIGN, answer="dark Red", category="attribute")
    found = {plant(record, SIZE, seed=n, errors=["wrong_answer"]).fields.answer for n in range(40)}
    assert found == {"dark Green", "dark Blue", "dark Yellow", "dark Black", "dark White"}


def test_an_object_becomes_another_without_any_other_records():
    record = replace(SIGN, answer="umbrella", category="object")
    found = {plant(record, SIZE, seed=n, errors=["wrong_answer"]).fields.answer for n in range(40)}
    assert len(found) == 4
    assert "an umbrella" not in found


def test_what_a_sign_says_is_never_turned_into_its_opposite():
    found = plant(replace(SIGN, answer="LEFT"), SIZE, seed=3, errors=["wrong_answer"]).fields.answer
    assert sum(a != b for a, b in zip(found, "LEFT", strict=True)) == 1


def test_a_text_without_digits_differs_in_one_letter_of_the_same_case():
    found = plant(replace(SIGN, answer="HARBOUR"), SIZE, seed=5, errors=["wrong_answer"]).fields.answer
    assert sum(a != b for a, b in zip(found, "HARBOUR", strict=True)) == 1
    assert found.isupper()


def test_a_wrong_object_is_no_part_of_the_right_one():
    record = replace(SIGN, answer="umbrella", category="object")
    planted = {plant(record, SIZE, seed=n, errors=["wrong_answer"]).fields.answer for n in range(40)}
    assert "an umbrella" not in planted
    assert len(planted) == 4


@pytest.mark.parametrize(
    ("record", "error"),
    [
        (BIRDS, "wrong_answer"),
        (SIGN, "wrong_count"),
        (replace(SIGN, answer="wooden", category="attribute"), "wrong_answer"),
        (replace(SIGN, boxes=(Box(0, 0, 4000, 3000),)), "moved_box"),
        (replace(SIGN, boxes=()), "moved_box"),
        (replace(SIGN, category=""), "wrong_category"),
    ],
)
def test_what_cannot_be_planted_is_none(record, error):
    assert plant(record, SIZE, seed=0, errors=[error]) is None


def test_every_kind_of_error_is_drawn():
    found = {plant(record, SIZE, seed=n).kind for n in range(40) for record in (SIGN, BIRDS)}
    assert found == set(ERRORS)


def test_a_share_of_the_items_is_chosen_and_a_larger_share_keeps_them():
    items = [f"item {n}" for n in range(20_000)]
    few = {item for item in items if is_selected(0.05, "gold", "streets", item)}
    more = {item for item in items if is_selected(0.1, "gold", "streets", item)}
    assert 900 < len(few) < 1100
    assert few < more


def test_campaigns_choose_different_items():
    items = [f"item {n}" for n in range(2000)]
    assert [is_selected(0.5, "gold", "a", item) for item in items] != [
        is_selected(0.5, "gold", "b", item) for item in items
    ]
    seeded = [is_selected(0.5, "gold", "a", item, seed=7) for item in items]
    assert seeded != [is_selected(0.5, "gold", "a", item) for item in items]
    assert seeded != [is_selected(0.5, "gold", "a", item, seed=8) for item in items]


@pytest.mark.parametrize(("share", "chosen"), [(0, False), (1, True)])
def test_none_and_all_can_be_chosen(share, chosen):
    assert {is_selected(share, "gold", "streets", f"item {n}") for n in range(500)} == {chosen}
