"""When one image shows a part of another: the limits of an overlap, and the frames that are looked at."""

from __future__ import annotations

import numpy as np
import pytest

from darkroom.pipelines.selection.decontamination.alignment import Alignment, align, propose
from tests.conftest import textured

GRAY = np.asarray(textured(4, (320, 240)).convert("L"))


def frame(scale: float, x: float = 0.0, y: float = 0.0) -> np.ndarray:
    return np.array([[scale, 0.0, x], [0.0, scale, y]])


@pytest.mark.parametrize(
    ("correlation", "of_query", "of_image", "n_agreeing", "same"),
    [
        (0.9, 0.6, 0.0, 3, True),
        (0.9, 0.0, 0.6, 3, True),
        (0.89, 1.0, 1.0, 9, False),
        (1.0, 0.59, 0.59, 9, False),
        (1.0, 1.0, 1.0, 2, False),
    ],
)
def test_a_part_is_by_correlation_and_cover_of_one_and_three_features(
    correlation, of_query, of_image, n_agreeing, same
):
    assert Alignment(correlation, of_query, of_image, 1.0, n_agreeing).same is same


def test_a_part_covers_all_of_the_query_and_its_share_of_the_image():
    found = align(GRAY[60:180, 80:240], GRAY, [(frame(1.0, 80, 60), 5)])
    assert found.correlation == pytest.approx(1.0, abs=0.001)
    assert found.of_query == pytest.approx(1.0, abs=0.02)
    assert found.of_image == pytest.approx(0.25, abs=0.01)
    assert (found.scale, found.n_agreeing, found.same) == (1.0, 5, True)


def test_a_frame_that_is_a_pixel_off_is_refined():
    found = align(GRAY[60:180, 80:240], GRAY, [(frame(1.0, 82, 59), 5)])
    assert found.correlation > 0.99


def test_an_overlap_beyond_the_edge_is_of_the_image_as_far_as_it_goes():
    found = align(GRAY, GRAY[:, 100:], [(frame(1.0, -100, 0), 3)])
    assert found.of_query == pytest.approx(220 / 320, abs=0.02)
    assert found.of_image == pytest.approx(1.0, abs=0.02)
    assert found.same


def test_the_best_overlap_is_one_that_is_the_same_then_the_one_with_most_correlation():
    query = GRAY[60:180, 80:240]
    right, few, wrong = (frame(1.0, 80, 60), 3), (frame(1.0, 80, 60), 2), (frame(1.0, 0, 0), 9)
    for proposals in ([right, few, wrong], [wrong, few, right]):
        assert align(query, GRAY, proposals).n_agreeing == 3
    assert align(query, GRAY, [wrong]) is None, "hardly any correlation"
    assert align(query, GRAY, []) is None


@pytest.mark.parametrize(("scale", "is_compared"), [(1 / 16, True), (1 / 16.5, False), (16.0, True), (16.5, False)])
def test_no_frame_zooms_more_than_sixteen_times(scale, is_compared):
    whole = np.asarray(textured(6, (512, 512)).convert("L"))
    side = round(512 / max(scale, 1 / scale))
    small = np.asarray(textured(6, (512, 512)).convert("L").resize((side, side)))
    query, image = (small, whole) if scale > 1 else (whole, small)
    found = align(query, image, [(np.array([[scale, 0, (scale - 1) / 2], [0, scale, (scale - 1) / 2]]), 3)])
    assert (found is not None) is (is_compared and side >= 24)
    if found:
        assert found.scale == pytest.approx(scale)


@pytest.mark.parametrize(("side", "is_compared"), [(24, True), (23, False)])
def test_an_image_of_less_than_24_pixels_is_not_compared(side, is_compared):
    small = GRAY[100 : 100 + side, 100:200]
    assert (align(small, GRAY, [(frame(1.0, 100, 100), 3)]) is not None) is is_compared


@pytest.mark.parametrize(("side", "is_compared"), [(40, True), (28, True), (23, False), (10, False)])
def test_an_overlap_of_less_than_24_pixels_square_shows_hardly_anything(side, is_compared):
    large = np.asarray(textured(4, (640, 480)).convert("L"))
    query, image = large[:240, :320], large[240 - side : 480 - side, 320 - side : 640 - side]
    found = align(query, image, [(frame(1.0, side - 320, side - 240), 3)])
    assert (found is not None) is is_compared
    assert found is None or found.of_query == pytest.approx(side * side / query.size, rel=0.1)


def test_plain_regions_agree_with_nothing():
    faint, clear = (np.random.default_rng(0).normal(100, levels, (100, 100)).astype(np.uint8) for levels in (4, 8))
    assert align(faint, faint, [(frame(1.0), 9)]) is None
    assert align(clear, clear, [(frame(1.0), 9)]) is not None
    half = np.where(np.arange(100) < 50, faint, GRAY[:100, :100]).astype(np.uint8)
    assert align(half, half, [(frame(1.0), 9)]) is not None


def places(*rows: tuple[float, float]) -> np.ndarray:
    return np.array([(*row, 4.0, 0.0) for row in rows], np.float32)


def of(*pairs: tuple[np.ndarray, tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Places of a query, and of an image where each group of them is shifted."""
    here = np.concatenate([own for own, _ in pairs])
    there = np.concatenate([own + np.array([*shift, 0, 0], np.float32) for own, shift in pairs])
    return here, there


def spread(n: int, seed: int = 0) -> np.ndarray:
    return places(*np.random.default_rng(seed).uniform(0, 400, (n, 2)).tolist())


def shifts(here: np.ndarray, there: np.ndarray, side: int = 400) -> list[tuple[int, int, int]]:
    return [(round(m[0, 2]), round(m[1, 2]), n) for m, n in propose(here, there, side)]


def test_frames_come_with_the_most_agreeing_first_and_at_most_three():
    groups = [(spread(n, n), shift) for n, shift in ((5, (0, 90)), (9, (100, 0)), (7, (0, 0)), (6, (60, 60)))]
    assert shifts(*of(*groups)) == [(100, 0, 9), (0, 0, 7), (60, 60, 6)]
    assert shifts(*of(*groups[:2])) == [(100, 0, 9), (0, 90, 5)]


def test_a_frame_needs_three_pairs():
    for n, found in ((2, []), (3, [(50, 0, 3)])):
        assert shifts(*of((spread(n), (50, 0)))) == found
        assert shifts(*of((spread(n), (50, 0)), (spread(1, 8), (200, 200)))) == found
    assert shifts(spread(0).reshape(0, 4), spread(0).reshape(0, 4)) == []


def test_a_frame_needs_a_quarter_of_the_best_ones_pairs():
    for n, n_frames in ((16, 2), (17, 1)):
        assert len(shifts(*of((spread(n), (100, 0)), (spread(4, 8), (0, 100))))) == n_frames


def test_a_frame_needs_six_in_a_hundred_of_all_pairs():
    rng = np.random.default_rng(5)
    for n_others, n_frames in ((61, 1), (75, 0)):
        lost = [(places(tuple(rng.uniform(0, 400, 2))), tuple(rng.uniform(-9e4, 9e4, 2))) for _ in range(n_others)]
        assert len(shifts(*of((spread(4), (100, 0)), *lost))) == n_frames


def test_a_pair_agrees_within_a_fiftieth_of_the_longer_side_and_half_a_power_of_two():
    here, there = of((spread(5), (100, 0)))
    there[4, 1] += 8.0
    assert shifts(here, there, 401)[0][2] == 5
    assert shifts(here, there, 390)[0][2] == 4
    here, there = of((spread(5), (100, 0)))
    for size, n in ((5.6, 5), (5.7, 4), (2.9, 5), (2.8, 4)):
        there[4, 2] = size
        assert shifts(here, there)[0][2] == n
