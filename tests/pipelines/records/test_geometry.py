"""Boxes and the border where other frames become ours."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.records.geometry import (
    Box,
    box_from_corners,
    box_from_fractions,
)

SIDES = st.integers(1, 20_000)
NOT_FOUR_FINITE = [[], [1, 2, 3], [1, 2, 3, 4, 5], [math.nan, 0, 1, 1], [0, 0, math.inf, 1], [0, 0, 10**400, 1]]


@st.composite
def boxes_in_images(draw: st.DrawFn) -> tuple[Box, int, int]:
    width, height = draw(SIDES), draw(SIDES)
    x1, y1 = draw(st.integers(0, width - 1)), draw(st.integers(0, height - 1))
    return Box(x1, y1, draw(st.integers(x1 + 1, width)), draw(st.integers(y1 + 1, height))), width, height


boxes = st.builds(Box, *[st.integers(-100, 100)] * 4)


@pytest.mark.parametrize("corners", NOT_FOUR_FINITE)
def test_corners_are_four_finite_numbers(corners):
    with pytest.raises(ValueError, match="four finite numbers x1, y1, x2, y2"):
        box_from_corners(corners)


@pytest.mark.parametrize("sides", NOT_FOUR_FINITE)
def test_fractions_are_four_finite_numbers(sides):
    with pytest.raises(ValueError, match="four finite numbers"):
        box_from_fractions(sides, 100, 100)


@pytest.mark.parametrize("corners", [(5, 5, 5, 9), (5, 5, 9, 5), (9, 5, 5, 9), (5, 9, 9, 5)])
def test_inverted_and_empty_corners_are_refused(corners):
    with pytest.raises(ValueError, match="x1 < x2 and y1 < y2"):
        box_from_corners(corners)


def test_fractions_beyond_the_image_are_refused():
    with pytest.raises(ValueError, match=r"0\.\.1; found \[0, 0, 1\.5, 1\]"):
        box_from_fractions([0, 0, 1.5, 1], 100, 100)


@given(boxes_in_images())
def test_fractions_of_a_box_give_the_box_back(drawn):
    box, width, height = drawn
    assert box_from_fractions((box.x1 / width, box.y1 / height, box.x2 / width, box.y2 / height), width, height) == box


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4))
def test_fractional_corners_are_covered_by_at_most_a_pixel_more(corners):
    x1, y1, x2, y2 = min(corners[0], corners[2]), min(corners[1], corners[3]), max(corners[0::2]), max(corners[1::2])
    if x1 < x2 and y1 < y2:
        box = box_from_corners((x1, y1, x2, y2))
        assert 0 <= x1 - box.x1 <= 1
        assert 0 <= box.y2 - y2 <= 1


def test_rounding_noise_does_not_grow_a_box():
    assert box_from_fractions((0.1, 0.1, 0.3, 0.7), 30, 10) == Box(3, 1, 9, 7)


@given(boxes, boxes)
def test_an_intersection_lies_in_both(one, other):
    common = one.intersection(other)
    if common.area:
        assert one.contains(common)
        assert other.contains(common)


@given(boxes, boxes)
def test_intersection_does_not_depend_on_the_order(one, other):
    assert one.intersection(other) == other.intersection(one)


@given(boxes, st.integers(1, 50), st.integers(1, 50))
def test_what_is_left_after_clipping_fits(box, width, height):
    clipped = box.clipped(width, height)
    assert clipped.area == 0 or clipped.fits(width, height)


@given(boxes_in_images())
def test_a_box_inside_is_not_clipped(drawn):
    box, width, height = drawn
    assert box.fits(width, height)
    assert box.clipped(width, height) == box


@given(boxes, st.integers(0, 20))
def test_a_grown_box_is_contained_with_that_slack(box, pixels):
    assert box.contains(box.grown(pixels), slack=pixels)
    assert not box.contains(box.grown(pixels + 1), slack=pixels)


@given(boxes)
def test_area_is_never_negative(box):
    assert box.area == (box.width * box.height if box.width > 0 and box.height > 0 else 0)


def test_an_inverted_box_fits_nowhere():
    assert not Box(9, 9, 1, 1).fits(100, 100)


def test_the_whole_image_fits():
    assert Box(0, 0, 7, 5).fits(7, 5)
    assert not Box(0, 0, 8, 5).fits(7, 5)
