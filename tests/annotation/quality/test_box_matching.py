"""Boxes matched one to one: what holds for all boxes, and cases worked out by hand."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from darkroom.annotation.quality.agreement import mean_iou
from darkroom.pipelines.records.geometry import Box, iou

BOXES = st.builds(
    lambda x, y, width, height: Box(x, y, x + width, y + height),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(1, 30),
    st.integers(1, 30),
)
SOME = st.lists(BOXES, max_size=4)


def test_half_of_a_box_moved_sideways_is_a_third():
    assert iou(Box(0, 0, 10, 10), Box(5, 0, 15, 10)) == pytest.approx(1 / 3)


def test_boxes_that_touch_do_not_overlap():
    assert iou(Box(0, 0, 10, 10), Box(10, 0, 20, 10)) == 0


@given(BOXES, BOXES)
def test_iou_is_symmetric_and_one_for_equal_boxes_only(left, right):
    assert iou(left, right) == iou(right, left)
    assert 0 <= iou(left, right) <= 1
    assert (iou(left, right) == 1) == (left == right)


@given(SOME, SOME)
def test_pairs_have_the_largest_sum_of_all_assignments(left, right):
    few, many = sorted((left, right), key=len)
    best = max(sum(iou(a, b) for a, b in zip(few, chosen, strict=True)) for chosen in permutations(many, len(few)))
    assert (mean_iou(left, right) or 0) * len(many) == pytest.approx(best)


@given(SOME, SOME)
def test_mean_iou_is_symmetric_and_blind_to_the_order_of_drawing(left, right):
    assert mean_iou(left, right) == pytest.approx(mean_iou(right, left))
    assert mean_iou(left[::-1], right) == pytest.approx(mean_iou(left, right))


@given(st.lists(BOXES, min_size=1, max_size=4))
def test_boxes_are_their_own_match(boxes):
    assert mean_iou(boxes, boxes) == 1


def test_a_box_too_many_halves_the_mean():
    box, other = Box(0, 0, 10, 10), Box(50, 50, 60, 60)
    assert mean_iou([box], [box, other]) == mean_iou([box, other], [box]) == 0.5


def test_without_boxes_nothing_is_measured():
    assert mean_iou([], []) is None
