"""Boxes at their edges: which side counts, what touches, and the sizes that models are sent."""

import pytest

from darkroom.pipelines.records.geometry import (
    Box,
    PixelLimits,
    box_from_corners,
    box_from_fractions,
    box_from_frame,
    iou,
)

BOX = Box(10, 20, 40, 60)
FARTHEST = 2**53


def test_a_box_is_as_wide_as_its_corners_are_apart():
    assert (BOX.width, BOX.height, BOX.area) == (30, 40, 1200)


@pytest.mark.parametrize("box", [Box(5, 0, 5, 9), Box(0, 5, 9, 5), Box(9, 0, 5, 9), Box(0, 9, 9, 5), Box(9, 9, 1, 1)])
def test_an_empty_or_inverted_box_has_no_area_and_fits_nowhere(box):
    assert box.area == 0
    assert not box.fits(100, 100)


@pytest.mark.parametrize(
    ("inner", "slack", "inside"),
    [
        (BOX, 0, True),
        (Box(9, 20, 40, 60), 0, False),
        (Box(10, 19, 40, 60), 0, False),
        (Box(10, 20, 41, 60), 0, False),
        (Box(10, 20, 40, 61), 0, False),
        (Box(9, 19, 41, 61), 1, True),
        (Box(8, 20, 40, 60), 1, False),
        (Box(10, 20, 40, 62), 1, False),
    ],
)
def test_a_box_contains_what_sticks_out_by_no_more_than_the_slack(inner, slack, inside):
    assert BOX.contains(inner, slack=slack) is inside


def test_without_a_slack_nothing_may_stick_out():
    assert BOX.contains(BOX)
    assert not BOX.contains(BOX.grown(1))


def test_growing_moves_every_side_outwards():
    assert BOX.grown(3) == Box(7, 17, 43, 63)


def test_an_intersection_has_the_inner_sides_and_clipping_is_one():
    assert BOX.intersection(Box(15, 10, 50, 50)) == Box(15, 20, 40, 50)
    assert Box(-5, -6, 40, 60).clipped(30, 20) == Box(0, 0, 30, 20)


@pytest.mark.parametrize(
    ("box", "fits"),
    [
        (Box(0, 0, 7, 5), True),
        (Box(6, 4, 7, 5), True),
        (Box(-1, 0, 7, 5), False),
        (Box(0, -1, 7, 5), False),
        (Box(0, 0, 8, 5), False),
        (Box(0, 0, 7, 6), False),
    ],
)
def test_a_box_fits_up_to_the_last_pixel(box, fits):
    assert box.fits(7, 5) is fits


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ((0, 0, 2, 2), (1, 0, 3, 2), 1 / 3),
        ((0, 0, 2, 4), (0, 1, 2, 3), 1 / 2),
        ((0, 0, 4, 2), (1, 1, 2, 2), 1 / 8),
        ((1, 2, 5, 4), (2, 3, 8, 9), 3 / 41),
        ((0, 0, 2, 2), (2, 0, 4, 2), 0.0),
        ((0, 0, 2, 2), (0, 2, 2, 4), 0.0),
        ((0, 0, 2, 2), (3, 3, 4, 4), 0.0),
        ((0, 0, 2, 2), (3, 0, 4, 2), 0.0),
        ((0.1, 0.1, 0.4, 0.4), (0.1, 0.1, 0.4, 0.4), 1.0),
        ((0, 0, 0.5, 0.5), (0, 0, 0.5, 0.25), 0.5),
    ],
)
def test_overlap_is_the_common_area_of_all_that_either_covers(first, second, overlap):
    assert iou(first, second) == pytest.approx(overlap)
    assert iou(second, first) == pytest.approx(overlap)


def test_fractional_corners_are_covered_outwards():
    assert box_from_corners((1.5, 2.9, 3.1, 4.0)) == Box(1, 2, 4, 4)


@pytest.mark.parametrize(
    ("corners", "is_finite"),
    [
        ((0, 0, FARTHEST - 1, 1), True),
        ((1 - FARTHEST, 0, 1, 1), True),
        ((0, 0, FARTHEST, 1), False),
        ((-FARTHEST, 0, 1, 1), False),
    ],
)
def test_corners_lie_where_a_float_tells_whole_numbers_apart(corners, is_finite):
    if is_finite:
        assert tuple(box_from_corners(corners)) == corners
    else:
        with pytest.raises(ValueError, match="four finite"):
            box_from_corners(corners)


def test_fractions_go_from_nought_to_one_and_each_side_has_its_own_length():
    assert box_from_fractions((0, 0, 1, 1), 30, 20) == Box(0, 0, 30, 20)
    assert box_from_fractions((0.25, 0.5, 0.75, 0.9), 100, 200) == Box(25, 100, 75, 180)
    assert box_from_fractions((0.251, 0.501, 0.749, 0.899), 100, 200) == Box(25, 100, 75, 180)


@pytest.mark.parametrize("fractions", [(-0.01, 0, 1, 1), (0, -0.01, 1, 1), (0, 0, 1.01, 1), (0, 0, 1, 1.01)])
def test_no_side_lies_outside_of_the_image(fractions):
    with pytest.raises(ValueError, match=r"lie in 0\.\.1"):
        box_from_fractions(fractions, 10, 10)


def test_corners_in_the_frame_that_was_sent_are_scaled_by_each_side_alone():
    assert box_from_frame((10, 20, 30, 40), (100, 50), 200, 200) == Box(20, 80, 60, 160)


@pytest.mark.parametrize(
    ("limits", "size", "fitted"),
    [
        (PixelLimits(), (33, 17), (33, 17)),
        (PixelLimits(step=28), (100, 60), (112, 56)),
        (PixelLimits(step=28), (13, 5), (28, 28)),
        (PixelLimits(step=28), (43, 41), (56, 28)),
        # on the limit, and a pixel beyond it
        (PixelLimits(maximum=10000), (100, 100), (100, 100)),
        (PixelLimits(maximum=9999), (100, 100), (99, 99)),
        (PixelLimits(minimum=10000), (100, 100), (100, 100)),
        (PixelLimits(minimum=10001), (100, 100), (101, 101)),
        (PixelLimits(maximum=1568, step=28), (55, 29), (56, 28)),
        (PixelLimits(minimum=1568, step=28), (57, 27), (56, 28)),
        # down to a multiple above the limit, up to one below it
        (PixelLimits(maximum=5000, step=10), (200, 50), (140, 30)),
        (PixelLimits(minimum=5000, step=10), (40, 20), (100, 50)),
        (PixelLimits(minimum=784 * 16, step=28), (56, 50), (140, 112)),
        (PixelLimits(maximum=100), (1000, 1), (316, 1)),
        (PixelLimits(minimum=784 * 4, maximum=784 * 8, step=28), (56, 56), (56, 56)),
        # the size as it would be sent is what a limit holds for
        (PixelLimits(maximum=784, step=28), (30, 30), (28, 28)),
        (PixelLimits(minimum=784, step=28), (27, 27), (28, 28)),
    ],
)
def test_an_image_is_resized_to_multiples_within_the_limits(limits, size, fitted):
    assert limits.fit(*size) == fitted
