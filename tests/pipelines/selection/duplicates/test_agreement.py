"""What makes two images one: the limits of every share, frames from matching features, and the masks of differences."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.selection.duplicates.local_features import Features
from darkroom.pipelines.selection.duplicates.looks import Look, look_of
from darkroom.pipelines.selection.duplicates.overlaid import ComparedPlaces, Overlaid, Scale
from darkroom.pipelines.selection.duplicates.same_image import (
    ImageComparison,
    fitted,
    pose_of_features,
    rescaled,
    same_image,
    similarities,
)
from tests.conftest import textured

ONE = Scale(sigmas=(1.0, 4.0), window=15, variance=4.0, alike=0.6)


@pytest.mark.parametrize(
    ("overlap", "agreeing", "covered", "region", "same"),
    [
        (0.6, 0.9, 0.0, 1.0, True),  # nearly everything agrees
        (0.59, 1.0, 1.0, 0.0, False),
        (0.6, 0.89, 0.0, 1.0, False),
        (0.6, 0.75, 0.5, 1.0, True),  # a photograph
        (0.6, 0.74, 0.5, 1.0, False),
        (0.6, 0.75, 0.49, 1.0, False),
        (0.6, 0.5, 0.0, 0.3, True),  # written on
        (0.6, 0.49, 0.0, 0.3, False),
        (0.6, 0.5, 0.0, 0.31, False),
    ],
)
def test_one_image_is_by_overlap_and_one_of_three_agreements(overlap, agreeing, covered, region, same):
    assert ImageComparison(overlap, agreeing, covered, region).same is same


@pytest.mark.parametrize(
    ("overlap", "agreeing", "same"), [(0.6, 0.75, True), (0.59, 0.75, False), (0.6, 0.74, False), (1.0, 1.0, True)]
)
def test_shading_is_the_same_by_overlap_and_agreement(overlap, agreeing, same):
    assert ImageComparison(overlap, agreeing, 0.0, 1.0).same_shading is same


def test_one_file_is_one_image_whatever_it_shows():
    look = look_of(Image.new("RGB", (40, 30), "white"))
    assert same_image(look, look) == ImageComparison(1.0, 1.0, 1.0, 0.0)
    assert not same_image(look, look).mirrored


def places(*rows: tuple[float, float, float, float]) -> np.ndarray:
    return np.array(rows, np.float32)


def moved(here: np.ndarray, scale: float, degrees: float, shift: tuple[float, float]) -> np.ndarray:
    """Places in the frame of an image that is scaled, turned and shifted."""
    turn = math.radians(degrees)
    linear = scale * np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    there = here.copy()
    there[:, :2] = here[:, :2] @ linear.T + shift
    there[:, 2] *= scale
    there[:, 3] += degrees
    return there


HERE = places((10, 20, 4, 30), (80, 15, 6, 100), (40, 90, 5, 200), (120, 70, 8, 310))


@pytest.mark.parametrize(("scale", "degrees", "shift"), [(1.0, 0, (0, 0)), (2.0, 30, (5, -7)), (0.5, 250, (100, 40))])
def test_every_pair_of_one_frame_proposes_that_frame_and_all_agree(scale, degrees, shift):
    matrices, agreeing = similarities(HERE, moved(HERE, scale, degrees, shift), near=0.1, zoom=0.5)
    turn = math.radians(degrees)
    cos, sin = scale * math.cos(turn), scale * math.sin(turn)
    assert matrices == pytest.approx(np.array([[[cos, -sin, shift[0]], [sin, cos, shift[1]]]] * 4), abs=1e-3)
    assert agreeing.all()


def test_a_pair_agrees_up_to_the_distance_and_below_the_zoom():
    there = HERE.copy()
    there[1, 0] += 3.0
    there[2, 2] *= 2.0
    assert similarities(HERE, there, near=3.0, zoom=1.1)[1][0].tolist() == [True, True, True, True]
    assert similarities(HERE, there, near=2.9, zoom=1.1)[1][0].tolist() == [True, False, True, True]
    assert similarities(HERE, there, near=3.0, zoom=1.0)[1][0].tolist() == [True, True, False, True]
    there[2, 2] *= 0.25
    assert similarities(HERE, there, near=3.0, zoom=1.0)[1][0].tolist() == [True, True, False, True]


def test_no_proposal_zooms_more_than_the_largest():
    there = moved(HERE, 8.0, 0, (0, 0))
    matrices, agreeing = similarities(HERE, there, near=1e4, zoom=1.5, largest_zoom=2.0)
    assert matrices[:, 0, 0] == pytest.approx(2.0)
    assert not agreeing.any(), "sizes say eight times, the frame twice"
    smaller = similarities(there, HERE, near=1e4, zoom=2.5, largest_zoom=2.0)
    assert smaller[0][:, 0, 0] == pytest.approx(0.5)
    assert smaller[1].all()


def test_a_frame_is_fitted_to_three_pairs_and_stays_as_it_was_with_two_or_in_one_place():
    there, first = moved(HERE, 1.5, 10, (3, 4)), np.eye(2, 3)
    assert fitted(first, HERE[:2], there[:2]) is first
    exact = similarities(HERE, there, near=1, zoom=1)[0][0]
    for n in (3, 4):
        assert fitted(first, HERE[:n], there[:n]) == pytest.approx(exact, abs=1e-3)
    one_place = places(*[(5, 5, 1, 0)] * 4)
    assert fitted(first, one_place, one_place) is first


def features(signatures: np.ndarray, here: np.ndarray) -> Features:
    return Features(here[: len(signatures)], signatures)


def test_a_pose_needs_three_mutual_features_that_are_near():
    signatures = np.random.default_rng(0).integers(0, 2**63, (4, 4), dtype=np.uint64)
    there = moved(HERE, 2.0, 0, (1, 2))
    for n in (0, 1, 2):
        matrix, n_agreeing = pose_of_features(features(signatures[:n], HERE), features(signatures, there), 320)
        assert (matrix.tolist(), n_agreeing) == (np.eye(2, 3).tolist(), 0)
    for n in (3, 4):
        matrix, n_agreeing = pose_of_features(features(signatures[:n], HERE), features(signatures, there), 320)
        assert n_agreeing == n
        assert matrix == pytest.approx(np.array([[2, 0, 1], [0, 2, 2]]), abs=1e-3)
    far = signatures.copy()
    far[0] ^= np.array([2**64 - 1, 1, 0, 0], np.uint64)  # 65 bits: another place
    assert pose_of_features(features(far[:3], HERE), features(signatures, there), 320)[1] == 0
    near = signatures.copy()
    near[0] ^= np.array([2**64 - 1, 0, 0, 0], np.uint64)
    assert pose_of_features(features(near[:3], HERE), features(signatures, there), 320)[1] == 3


def test_a_pose_is_of_the_features_that_agree_within_a_share_of_the_side():
    signatures = np.random.default_rng(1).integers(0, 2**63, (4, 4), dtype=np.uint64)
    there = HERE.copy()
    there[3, :2] += (9.0, 0.0)
    assert pose_of_features(features(signatures, HERE), features(signatures, there), 310)[1] == 4, "9 of 9.3 pixels"
    assert pose_of_features(features(signatures, HERE), features(signatures, there), 290)[1] == 3
    twice = np.concatenate([signatures, signatures[:1]])
    here = np.concatenate([HERE, HERE[:1] + 50])
    assert pose_of_features(Features(here, twice), features(signatures, HERE), 310)[1] == 4, "each counts once"


def test_a_frame_between_copies_takes_pixel_centres_to_pixel_centres():
    whole, half = np.zeros((40, 80), np.uint8), np.zeros((20, 40), np.uint8)
    beside, third = np.zeros((60, 90), np.uint8), np.zeros((20, 30), np.uint8)
    matrix = np.array([[1.5, 0.2, 3.0], [-0.1, 0.8, 5.0]])
    assert rescaled(matrix, whole, whole, beside, beside) == pytest.approx(matrix)
    small = rescaled(matrix, whole, half, beside, third)
    for x, y in ((0.0, 0.0), (10.0, 4.0), (33.0, 17.0)):
        there = matrix @ [2 * (x + 0.5) - 0.5, 2 * (y + 0.5) - 0.5, 1]
        assert small @ [x, y, 1] == pytest.approx((there + 0.5) / 3 - 0.5)


def shifted(x: float, y: float = 0.0) -> np.ndarray:
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y]])


GRAY = np.asarray(textured(3, (160, 120)).convert("L"))


@pytest.mark.parametrize(("shift", "overlap"), [(0, 1.0), (40, 120 / 200), (53, 107 / 213)])
def test_the_overlap_is_of_all_that_the_two_cover(shift, overlap):
    overlaid = Overlaid.by(shifted(shift), GRAY, GRAY)
    assert overlaid.overlap == pytest.approx(overlap)
    inside = overlaid.inside
    assert inside.sum() == 120 * (160 - shift - (3 if shift else 0)), "without its inner edge"
    assert (overlaid.beside[:, : 160 - shift] == GRAY[:, shift:]).all()


def test_less_than_half_in_common_is_no_overlap():
    assert Overlaid.by(shifted(54), GRAY, GRAY) is None
    assert Overlaid.by(shifted(500), GRAY, GRAY) is None
    half = np.array([[0.5, 0, 0], [0, 0.5, 0]])
    assert Overlaid.by(half, GRAY, GRAY) is None, "a quarter of the second"
    three_quarters = np.array([[0.75, 0, 0], [0, 0.75, 0]])
    assert Overlaid.by(three_quarters, GRAY, GRAY).overlap == pytest.approx(0.5625, abs=0.01)


def test_what_is_masked_is_filled_from_around_and_not_compared():
    overlaid = Overlaid.by(shifted(0), GRAY, GRAY[:, ::-1].copy())
    mask = np.zeros(GRAY.shape, np.bool_)
    assert overlaid.without(mask) is overlaid
    mask[50:60, 70:80] = True
    masked = overlaid.without(mask)
    assert (masked.inside == (overlaid.inside & ~mask)).all()
    assert (masked.gray[~mask] == GRAY[~mask]).all()
    assert (masked.beside[~mask] == overlaid.beside[~mask]).all()
    assert (masked.gray[mask] != GRAY[mask]).any()
    assert masked.overlap == overlaid.overlap


def test_places_agree_with_themselves_brighter_or_fainter_and_not_with_the_negative():
    for factor, offset in ((1, 0), (0.5, 60), (0.3, 10)):
        beside = (GRAY * factor + offset).astype(np.uint8)
        compared = Overlaid.by(shifted(0), GRAY, beside).places(ONE)
        assert compared.share_agreeing > 0.97
    negative = Overlaid.by(shifted(0), GRAY, 255 - GRAY).places(ONE)
    assert negative.share_agreeing == 0
    plain = Overlaid.by(shifted(0), GRAY, np.full_like(GRAY, 90)).places(ONE)
    assert plain.detailed.any()
    assert plain.share_agreeing == plain.covered == 0
    nothing = Overlaid.by(shifted(0), np.full_like(GRAY, 9), np.full_like(GRAY, 90)).places(ONE)
    assert not nothing.detailed.any()
    assert nothing.share_agreeing == 0


def test_details_of_one_of_the_two_are_details_and_very_faint_ones_of_the_other_never_agree():
    levels = 128 + 60 * (np.indices((120, 160)).sum(axis=0) % 16 < 8).astype(np.float32)
    for factor, is_agreeing in ((0.25, True), (0.1, False)):
        faint = (levels * factor).astype(np.uint8)
        for gray, beside in ((levels.astype(np.uint8), faint), (faint, levels.astype(np.uint8))):
            compared = Overlaid.by(shifted(0), gray, beside).places(ONE)
            assert compared.detailed.sum() == compared.inner.sum()
            assert (compared.share_agreeing > 0.9) is is_agreeing
            assert compared.window == 15


def test_a_margin_on_every_side_is_not_compared():
    compared = Overlaid.by(shifted(0), GRAY, GRAY).places(ONE)
    rows, columns = np.nonzero(compared.inner)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (7, 120 - 8, 10, 160 - 11), "0.06 of the sides"
    assert compared.inner.sum() == (120 - 14) * (160 - 20)
    wide = Overlaid.by(shifted(0), GRAY, GRAY).places(replace(ONE, margin=0.12))
    assert wide.inner.sum() == (120 - 2 * 14) * (160 - 2 * 19)


def compared(*boxes: tuple[int, int, int, int], window: int = 9, shape: tuple[int, int] = (200, 200)) -> ComparedPlaces:
    """Places that all have details and agree outside of these boxes (left, top, right, bottom)."""
    everywhere, agreeing = np.ones(shape, np.bool_), np.ones(shape, np.bool_)
    for left, top, right, bottom in boxes:
        agreeing[top:bottom, left:right] = False
    levels = np.ones(shape, np.float32)
    return ComparedPlaces(everywhere, everywhere, agreeing, levels, levels, window)


def test_what_differs_is_without_specks():
    differing = compared((10, 10, 14, 60), (100, 100, 105, 105)).differing
    assert differing.sum() == 25
    assert differing[100:105, 100:105].all()


def test_shares_are_of_the_places_with_details_and_of_all():
    all_places = compared((0, 0, 100, 200))
    assert (all_places.share_agreeing, all_places.covered) == (0.5, 0.5)
    few = replace(all_places, detailed=all_places.detailed & (np.arange(200) < 150))
    agreeing = few.agreeing & few.detailed
    few = replace(few, agreeing=agreeing)
    assert (few.share_agreeing, few.covered) == (pytest.approx(1 / 3), 0.25)
    none = replace(few, detailed=~few.inner, agreeing=~few.inner, inner=~few.inner)
    assert (none.share_agreeing, none.covered) == (0, 0)


@pytest.mark.parametrize(
    ("boxes", "region"),
    [
        ((), 0.0),
        (((20, 20, 32, 32),), 0.0),  # 144 of 40,000 pixels: a speck
        (((20, 20, 36, 30),), 0.0),  # exactly 160
        (((20, 20, 43, 27),), (23 - 8) * 1 / 40_000),  # 161; the window widens every side by 8, one pixel stays
        (((20, 20, 60, 50), (120, 100, 160, 140)), (140 - 8) * (120 - 8) / 40_000),
        (((20, 20, 60, 50), (180, 180, 190, 190)), (40 - 8) * (30 - 8) / 40_000),
    ],
)
def test_the_region_is_the_box_around_all_that_is_no_speck(boxes, region):
    assert compared(*boxes).region == pytest.approx(region)


@pytest.mark.parametrize(
    ("boxes", "is_scattered"),
    [
        ((), False),
        (((0, 0, 100, 100),), False),  # a quarter of the image, filled
        (((0, 0, 100, 101),), True),
        (((0, 0, 20, 20), (30, 30, 50, 50)), True),  # 2,500 pixels, a third of them differ
        (((0, 0, 20, 30), (20, 30, 40, 60)), False),  # half of 2,400
        (((0, 0, 24, 40), (36, 0, 60, 40)), False),
        (((0, 0, 10, 10), (18, 18, 28, 28)), False),  # 784 pixels: too small to tell
        (((0, 0, 10, 10), (19, 19, 29, 29)), True),  # 841
        (((0, 0, 100, 60), (180, 180, 197, 197)), False),  # less than a twentieth of the largest
        (((0, 0, 100, 60), (180, 180, 198, 198)), True),
        (((0, 0, 5, 5),), False),
    ],
)
def test_what_differs_far_apart_is_scattered(boxes, is_scattered):
    assert compared(*boxes).is_scattered is is_scattered


def test_a_dot_of_a_quarter_window_counts_as_no_difference():
    dots = ((0, 0, 7, 6), (100, 100, 107, 106))
    assert not compared(*dots, window=13).is_scattered, "42 of 169 pixels"
    assert compared(*dots, window=12).is_scattered


def put(on_first: tuple[int, int], on_second: tuple[int, int]) -> ComparedPlaces:
    """The first differs in the columns ``on_first``, where the second is plain, and the other way round."""
    of_places = compared((on_first[0], 0, on_first[1], 200), (on_second[0], 0, on_second[1], 200))
    own, beside = np.ones((200, 200), np.float32), np.ones((200, 200), np.float32)
    beside[:, slice(*on_first)] = 0.19
    own[:, slice(*on_second)] = 0.19
    return replace(of_places, own=own, of_beside=beside)


def test_things_moved_are_on_one_image_here_and_on_the_other_there():
    assert put((20, 40), (100, 130)).moved == pytest.approx(0.1)
    assert put((20, 40), (100, 130)).replaced == 0
    assert put((20, 40), (40, 40)).moved == 0, "added, not moved"
    both = compared((20, 0, 40, 200))
    assert (both.moved, both.replaced) == (0, pytest.approx(0.1))
    a_fifth = replace(both, of_beside=np.full((200, 200), 0.2, np.float32))
    assert a_fifth.replaced == pytest.approx(0.1), "a fifth of the variance is not plain"


def test_looks_have_both_sides_and_a_grey_copy_of_320_pixels():
    look = look_of(textured(5, (640, 480)))
    assert isinstance(look, Look)
    assert (look.longer_side, look.gray.shape) == (320, (240, 320))
    assert look_of(textured(5, (64, 80))).longer_side == 80
    assert look_of(textured(5, (100, 400))).gray.shape == (320, 80)
    plain, mirrored = look.features
    assert 0 < len(plain) == len(mirrored) <= 96
    assert mirrored.places[:, 0] == pytest.approx(319 - plain.places[:, 0])
    assert mirrored.places[:, 1:3] == pytest.approx(plain.places[:, 1:3])
    assert mirrored.places[:, 3] == pytest.approx(180 - plain.places[:, 3])
