"""Local features: where they lie, how they are spread, and which images share them."""

from __future__ import annotations

import numpy as np
import pytest

from darkroom.pipelines.selection.duplicates import local_features
from darkroom.pipelines.selection.duplicates.local_features import (
    SAME_PLACE,
    Features,
    PartIndex,
    Sought,
    features_of_both,
    scaled,
)
from tests.conftest import textured

GRAY = np.asarray(textured(7, (240, 180)).convert("L"))
SOUGHT = Sought(most=60, largest_side=240, contrast=0.01, cells=4)


def spots(*placed: tuple[int, int, int], size: tuple[int, int] = (160, 120)) -> np.ndarray:
    """Soft spots (x, y, brightness) on grey."""
    columns, rows = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    image = np.full((size[1], size[0]), 60.0)
    for x, y, level in placed:
        image += level * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * 4**2))
    return image.astype(np.uint8)


@pytest.mark.parametrize(
    ("factor", "shape"),
    [(1.0, (30, 50)), (1.5, (30, 50)), (0.5, (15, 25)), (0.04, (1, 2)), (0.01, (1, 1)), (0.99, (30, 50))],
)
def test_an_image_is_only_made_smaller_and_to_a_pixel_at_least(factor, shape):
    gray = np.arange(1500, dtype=np.uint8).reshape(30, 50)
    assert scaled(gray, factor).shape == shape
    assert (scaled(gray, factor) is gray) is (factor >= 1)
    assert (scaled(np.full((30, 50), 7, np.uint8), factor) == 7).all()


def test_features_lie_in_pixels_of_the_image_whatever_the_side_at_which_they_are_found():
    placed = ((60, 50, 150), (200, 110, 120))
    image = spots(*placed, size=(320, 240))
    for largest_side in (320, 160):
        sought = Sought(most=9, largest_side=largest_side, contrast=0.01, cells=4)
        found = features_of_both(image, sought)[0].places
        for x, y, _ in placed:
            nearest = np.hypot(found[:, 0] - x, found[:, 1] - y).argmin()
            assert found[nearest, :3] == pytest.approx([x, y, 7], abs=0.5), "place and size"


def test_the_strongest_of_every_cell_come_first_and_then_the_next_ones():
    corners = ((30, 30, 120), (60, 40, 90), (120, 30, 100), (40, 90, 80), (130, 90, 110), (100, 75, 60))
    found = {
        n: features_of_both(spots(*corners), Sought(most=n, largest_side=160, contrast=0.01, cells=2))[0].places
        for n in (4, 6)
    }
    cells = [(int(x // 80), int(y // 60)) for x, y in found[4][:, :2]]
    assert cells == [(0, 0), (1, 0), (0, 1), (1, 1)]
    strongest = [(30, 30), (120, 30), (40, 90), (130, 90)]
    assert found[4][:, :2] == pytest.approx(np.array(strongest), abs=2)
    assert found[6][:4] == pytest.approx(found[4])
    assert (int(found[6][4, 0] // 80), int(found[6][4, 1] // 60)) == (0, 0)


def test_there_are_no_more_than_are_sought():
    for most in (1, 7):
        features = features_of_both(GRAY, Sought(most=most, largest_side=240, contrast=0.01, cells=4))
        assert [len(side) for side in features] == [most, most]
        assert features[0].signatures.shape == (most, 4)


@pytest.mark.parametrize(("shape", "has_some"), [((16, 90), True), ((15, 90), False), ((90, 1), False)])
def test_a_line_of_pixels_has_none(shape, has_some):
    image = np.random.default_rng(0).integers(0, 255, shape, np.uint8)
    assert bool(len(features_of_both(image, SOUGHT)[0])) is has_some
    assert features_of_both(image, SOUGHT)[0].places.shape[1] == 4


def test_plain_images_have_none():
    plain, mirrored = features_of_both(np.full((90, 120), 9, np.uint8), SOUGHT)
    assert len(plain) == len(mirrored) == 0
    assert plain.signatures.shape == mirrored.signatures.shape == (0, 4)


def n_bits(signatures: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.bitwise_count(signatures[:, None] ^ others[None]).sum(axis=2)


def test_the_mirror_image_has_the_features_of_the_image_mirrored():
    mirrored = features_of_both(GRAY, SOUGHT)[1]
    flipped = features_of_both(np.ascontiguousarray(GRAY[:, ::-1]), SOUGHT)[0]
    distance = np.hypot(*(mirrored.places[:, None, at] - flipped.places[None, :, at] for at in (0, 1)))
    turned = np.abs((mirrored.places[:, None, 3] - flipped.places[None, :, 3] + 180) % 360 - 180)
    at_one_place = (distance < 2) & (turned < 10)
    assert at_one_place.any(axis=1).mean() > 0.7
    bits = n_bits(mirrored.signatures, flipped.signatures)
    assert np.median(bits[at_one_place]) < 25
    assert np.median(bits) > 100


def test_a_longer_reach_describes_more_of_the_same_places():
    usual, nearly, longer = (
        features_of_both(GRAY, Sought(most=60, largest_side=240, contrast=0.01, cells=4, reach=reach))[0]
        for reach in (1.0, 1.0001, 1.5)
    )
    for other in (nearly, longer):
        assert (other.places == usual.places).all()
    own = np.arange(len(usual))
    assert np.median(n_bits(usual.signatures, nearly.signatures)[own, own]) < 4
    assert 15 < np.median(n_bits(usual.signatures, longer.signatures)[own, own]) < 120


@pytest.mark.parametrize(("reach", "is_seen"), [(1.0, False), (1.5, True)])
def test_what_lies_farther_is_described_with_a_longer_reach_alone(reach, is_seen):
    """A bar 34 pixels from a spot whose descriptor covers about 27."""
    plain, barred = spots((60, 60, 150)), spots((60, 60, 150))
    barred[:, 94:] = 250
    sought = Sought(most=60, largest_side=160, contrast=0.01, cells=4, reach=reach)
    found = []
    for gray in (plain, barred):
        features = features_of_both(gray, sought)[0]
        at_spot = np.hypot(features.places[:, 0] - 60, features.places[:, 1] - 60) < 1
        found.append(features.signatures[at_spot])
    assert bool(n_bits(*found).min() > 25) is is_seen


def of(signatures: np.ndarray) -> Features:
    return Features(np.zeros((len(signatures), 4), np.float32), signatures)


def differing(signature: np.ndarray, bits: range) -> np.ndarray:
    """The signature with these of its 256 bits flipped."""
    changed = signature.copy()
    for bit in bits:
        changed[bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)
    return changed


RNG = np.random.default_rng(11)
A, B, C, D = RNG.integers(0, 2**63, (4, 4), dtype=np.uint64)


def alike(index: PartIndex, *signatures: np.ndarray, n_images: int = 9, n_features: int = 9) -> list[tuple]:
    found = index.most_alike(np.array(signatures, np.uint64).reshape(-1, 4), n_images=n_images, n_features=n_features)
    return [(one.image, one.of_query.tolist(), one.of_image.tolist()) for one in found]


def test_the_images_that_share_most_come_first_with_their_features_nearest_first():
    near = differing(B, range(128, 148))
    index = PartIndex([of(np.array([A])), of(np.array([C, near, A])), of(np.array([D]))])
    assert index.starts.tolist() == [0, 1, 4, 5]
    assert alike(index, B, A)[:2] == [(1, [1, 0], [2, 1]), (0, [1], [0])]
    assert alike(index, B, A, n_images=1) == [(1, [1, 0], [2, 1])]
    assert alike(index, B, A, n_images=1, n_features=1) == [(1, [1], [2])]
    assert [(image, own) for image, own, _ in alike(index, B, A)] == [(1, [1, 0]), (0, [1]), (2, [])]


def test_nearer_features_weigh_more_and_equal_images_stay_in_order():
    index = PartIndex([of(np.array([differing(A, range(128, 150))])), of(np.array([A])), of(np.array([A]))])
    assert [image for image, _, _ in alike(index, A)] == [1, 2, 0]
    two_far = np.array([differing(A, range(128, 178)), differing(B, range(128, 178))])
    index = PartIndex([of(np.array([A])), of(two_far)])
    assert [image for image, _, _ in alike(index, A, B)] == [1, 0], "two halves and a little are more than one"
    two_halves = np.array([differing(A, range(128, 184)), differing(B, range(128, 184))])
    index = PartIndex([of(np.array([A])), of(two_halves)])
    assert [image for image, _, _ in alike(index, A, B)] == [0, 1], "two halves are one"


def test_of_one_image_a_feature_is_the_nearest_place():
    index = PartIndex([of(np.array([differing(A, range(130, 140)), A, differing(A, range(150, 151))]))])
    assert alike(index, A) == [(0, [0], [1])]
    index = PartIndex([of(np.array([A, A]))])
    assert alike(index, A) == [(0, [0], [0])]


@pytest.mark.parametrize("band", range(8))
def test_agreeing_in_one_of_eight_bands_is_enough_if_the_rest_is_near(band):
    assert SAME_PLACE == 56
    spared = set(range(16 * band, 16 * band + 16))
    changed = [16 * other for other in range(8) if other != band]
    others = [bit for bit in range(128, 256) if bit not in spared]
    for n, is_found in ((56, True), (57, False)):
        flipped = differing(A, [*changed, *others[: n - len(changed)]])
        index = PartIndex([of(np.array([flipped]))])
        assert bool(alike(index, A)[0][1]) is is_found
    in_none = differing(A, [*changed, 16 * band])
    assert alike(PartIndex([of(np.array([in_none]))]), A) == [(0, [], [])]


def test_a_key_that_more_than_64_features_have_tells_nothing():
    same = np.repeat(A[None], 65, axis=0)
    assert alike(PartIndex([of(same[:64])]), A) == [(0, [0], [0])]
    assert alike(PartIndex([of(same)]), A) == [(0, [], [])]


def test_many_signatures_are_compared_in_parts_with_the_same_result(monkeypatch):
    signatures = RNG.integers(0, 2**63, (40, 4), dtype=np.uint64)
    images = [of(np.concatenate([signatures[n : n + 5], signatures[n : n + 2]])) for n in range(0, 35, 3)]
    whole = alike(PartIndex(images), *signatures, n_images=12)
    assert sum(len(own) for _, own, _ in whole) == 12 * 5
    for at_once in (1, 7):
        monkeypatch.setattr(local_features, "_AT_ONCE", at_once)
        assert alike(PartIndex(images), *signatures, n_images=12) == whole


def test_nothing_is_found_in_nothing():
    assert alike(PartIndex([]), A) == []
    assert alike(PartIndex([of(np.zeros((0, 4), np.uint64))]), A) == [(0, [], [])]
    assert alike(PartIndex([of(np.array([A]))])) == [(0, [], [])]
