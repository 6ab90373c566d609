"""Limits of the perceptual hash, of the search by its bits, and of what is told of a duplicate."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.selection.duplicates.local_features import Features
from darkroom.pipelines.selection.duplicates.look_search import Proposals, near_looks
from darkroom.pipelines.selection.duplicates.looks import (
    TURNS,
    Look,
    PerceptualHash,
    band_keys,
    flips,
    gray_pixels,
    perceptual_hash,
)
from darkroom.pipelines.selection.duplicates.same_image import ImageComparison
from tests.conftest import textured

LOWEST = [(x, total - x) for total in range(1, 6) for x in range(total + 1)]


def of_frequencies(amplitudes: list[float]) -> Image.Image:
    """32 x 32 pixels with these cosine frequencies, the lowest first, at most 20."""
    spectrum = np.zeros((32, 32), np.float32)
    spectrum[0, 0] = 128 * 32
    for (x, y), amplitude in zip(LOWEST, amplitudes, strict=False):
        spectrum[y, x] = amplitude
    return Image.fromarray(np.clip(np.rint(cv2.idct(spectrum)), 0, 255).astype(np.uint8))


@pytest.mark.parametrize(
    ("n_frequencies", "amplitude", "has_hash"),
    [(16, 60.0, True), (15, 60.0, False), (16, -60.0, True), (20, 2.4, False), (20, 3.8, True)],
)
def test_a_hash_needs_sixteen_frequencies_above_the_noise(n_frequencies, amplitude, has_hash):
    image = of_frequencies([300.0, 300.0, *[amplitude] * (n_frequencies - 2)])
    assert (perceptual_hash(image) is not None) is has_hash


def test_the_bits_are_the_lowest_frequencies_above_their_median_in_zigzag_order():
    signs = [1, -1, 1, 1, -1, -1, -1, 1, -1, 1, 1, -1, 1, -1, 1, 1, -1, -1, 1, 1]
    hashed = perceptual_hash(of_frequencies([70.0 * sign for sign in signs]))
    first = f"{hashed.bits:064b}"[:20]
    assert [digit == "1" for digit in first] == [sign > 0 for sign in signs]


def test_the_turns_are_the_hashes_of_the_turned_image():
    image = of_frequencies([70, -50, 40, 30, -60, -35, 25, 45, -55, 65, 33, -44, 52, -61, 39, 47, -58, -36, 27, 41])
    hashed = perceptual_hash(image)
    assert hashed.bits == hashed.turns[0]
    for turn, bits in zip(TURNS, hashed.turns, strict=True):
        turned = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if "mirrored" in turn else image
        degrees = int(turn.split()[-1]) if "rotated" in turn else 0
        assert (perceptual_hash(turned.rotate(degrees)).bits ^ bits).bit_count() <= 4, turn
    assert TURNS == (
        "",
        "rotated 90",
        "rotated 180",
        "rotated 270",
        "mirrored",
        "mirrored, rotated 90",
        "mirrored, rotated 180",
        "mirrored, rotated 270",
    )


def framed(image: Image.Image, left: int, top: int, right: int, bottom: int, level: int = 0) -> Image.Image:
    frame = Image.new("L", (image.width + left + right, image.height + top + bottom), level)
    frame.paste(image, (left, top))
    return frame


PHOTO = textured(1, (100, 100)).convert("L")


@pytest.mark.parametrize("sides", [(20, 0, 20, 0), (0, 20, 0, 20), (10, 20, 25, 5), (1, 1, 1, 1)])
@pytest.mark.parametrize("level", [0, 255])
def test_a_plain_frame_is_left_out(sides, level):
    assert perceptual_hash(framed(PHOTO, *sides, level=level)) == perceptual_hash(PHOTO)


@pytest.mark.parametrize("sides", [(30, 0, 0, 0), (0, 30, 0, 0), (0, 0, 30, 0), (0, 0, 0, 30)])
def test_a_plain_side_alone_is_no_frame(sides):
    assert perceptual_hash(framed(PHOTO, *sides)) != perceptual_hash(PHOTO)


def test_of_a_frame_at_most_a_quarter_of_each_side_is_left_out():
    wide = framed(PHOTO.resize((40, 200)), 80, 0, 80, 0)
    assert wide.size == (200, 200)
    assert perceptual_hash(wide) != perceptual_hash(PHOTO.resize((40, 200)))
    assert perceptual_hash(framed(PHOTO, 50, 0, 50, 0)) == perceptual_hash(PHOTO), "exactly a quarter"


@pytest.mark.parametrize(("level", "is_frame"), [(10, True), (11, False)])
def test_a_frame_may_have_ten_grey_levels(level, is_frame):
    image = framed(PHOTO, 20, 0, 20, 0)
    image.paste(level, (0, 0, 20, 50))
    image.paste(level, (120, 0, 140, 50))
    assert (perceptual_hash(image) == perceptual_hash(PHOTO)) is is_frame


def test_transparent_places_are_white():
    image = Image.new("RGBA", (2, 1), (200, 0, 0, 0))
    image.putpixel((1, 0), (10, 10, 10, 255))
    assert gray_pixels(image).tolist() == [[255, 10]]


@pytest.mark.parametrize(
    ("shift", "width", "key"), [(0, 4, 0b1101), (4, 4, 0b1010), (0, 1, 1), (1, 1, 0), (63, 1, 1), (60, 4, 0b1000)]
)
def test_a_band_is_so_many_bits_from_one_on(shift, width, key):
    assert band_keys(np.array([1 << 63 | 0b1010_1101], np.uint64), shift, width).tolist() == [key]


@pytest.mark.parametrize(("width", "most"), [(5, 0), (5, 1), (5, 2), (4, 4), (1, 1)])
def test_flips_are_all_patterns_of_so_many_bits_each_once(width, most):
    patterns = list(flips(width, most))
    assert patterns[0] == 0
    assert sorted(patterns) == [n for n in range(1 << width) if n.bit_count() <= most]


NONE = Features(np.zeros((0, 4), np.float32), np.zeros((0, 4), np.uint64))
BITS = 0x5A3C_96E1_0F78_D2B4


def hashed(*turns: int) -> Look:
    """A look without features whose hash has these turns; the rest are far from everything."""
    far = [BITS ^ (1 << 64) - 1 ^ 1 << at for at in range(7)]
    return Look(PerceptualHash((*turns, *far)[:8]), b"", (NONE, NONE))


def flipped(*positions: int) -> int:
    return BITS ^ sum(1 << at for at in positions)


def is_proposed(look: Look) -> bool:
    asked: list[tuple[int, int]] = []
    near_looks([hashed(BITS), look], compare=lambda row, of: asked.append((row, of)))
    assert asked in ([], [(1, 0)])
    return bool(asked)


@pytest.mark.parametrize(
    ("positions", "proposed"),
    [
        ((), True),
        ((0, 21, 23, 25, 27, 29, 41, 44, 46, 48, 50, 62), True),  # 12 bits, two in the first band: its ends
        ((1, 2, 4, 19, 20, 22, 42, 44, 46, 48, 50, 62), True),  # the ends of the second
        ((1, 2, 4, 19, 20, 23, 25, 27, 30, 41, 43, 63), True),  # the ends of the third
        ((0, 21, 23, 25, 27, 29, 41, 44, 46, 48, 50, 62, 63), False),  # 13
        ((0, 1, 21, 22, 23, 42, 43, 44, 63), False),  # 9, three in each band
        ((0, 1, 22, 23, 24, 43, 44, 63), True),  # 8
    ],
)
def test_hashes_within_twelve_bits_meet_by_two_of_a_band(positions, proposed):
    assert is_proposed(hashed(flipped(*positions))) is proposed


@pytest.mark.parametrize("turn", range(8))
def test_a_hash_is_near_in_any_turn(turn):
    turns = [*hashed(0).hash.turns[1:], BITS ^ (1 << 64) - 1]
    turns.insert(turn, flipped(3, 30))
    assert is_proposed(Look(PerceptualHash(tuple(turns[:8])), b"", (NONE, NONE)))


SAME = ImageComparison(0.9, 0.9, 0.9, 0.1)


def found(first: Look, second: Look, compared: ImageComparison) -> list[tuple]:
    twins = near_looks([first, second], compare=lambda row, of: compared)
    return [(one.index, one.of, one.kind, one.distance, one.turn) for one in twins]


def test_a_duplicate_says_how_many_bits_differ_and_how_it_was_turned():
    mirrored = ImageComparison(0.9, 0.9, 0.9, 0.1, mirrored=True)
    assert found(hashed(BITS), hashed(flipped(1, 2, 3)), SAME) == [(1, 0, "near_image", 3.0, "")]
    turned = hashed(*hashed(0).hash.turns[3:5], flipped(7))
    assert found(hashed(BITS), turned, mirrored) == [(1, 0, "near_image", 1.0, "rotated 180")]
    signatures = np.random.default_rng(2).integers(0, 2**63, (2, 4), dtype=np.uint64)
    sides = (Features(np.zeros((2, 4), np.float32), signatures), NONE)
    bare = Look(None, b"", sides)
    assert found(bare, bare, SAME) == [(1, 0, "near_image", 64.0, "")]
    assert found(bare, bare, mirrored) == [(1, 0, "near_image", 64.0, "mirrored")]
    for n, turn in ((12, ""), (13, "mirrored")):
        with_hash = Look(hashed(flipped(*range(n))).hash, b"", sides)
        assert found(Look(hashed(BITS).hash, b"", sides), with_hash, mirrored) == [(1, 0, "near_image", float(n), turn)]
        assert found(bare, with_hash, mirrored)[0][3:] == (64.0, "mirrored")


def test_two_features_propose_and_one_does_not():
    signatures = np.random.default_rng(3).integers(0, 2**63, (3, 4), dtype=np.uint64)

    def look(*own: np.ndarray, mirrored: np.ndarray | None = None) -> Look:
        sides = (np.array(own).reshape(-1, 4), np.zeros((0, 4), np.uint64) if mirrored is None else mirrored)
        return Look(None, b"", tuple(Features(np.zeros((len(side), 4), np.float32), side) for side in sides))

    whole = look(*signatures)
    assert found(whole, look(signatures[0]), SAME) == []
    assert found(whole, look(signatures[0], signatures[0]), SAME) != [], "two features of the later image"
    assert found(whole, look(*signatures[:2]), SAME) != []
    assert found(whole, look(mirrored=signatures[1:]), SAME) != [], "in the mirror image, too"


def proposals(*rows: tuple[int, int, int]) -> Proposals:
    return Proposals(*np.array(rows, np.int64).reshape(-1, 3).T)


def listed(some: Proposals) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in some), strict=True))


def test_proposals_are_joined_each_pair_once_with_its_best_evidence_the_likeliest_first():
    joined = Proposals.joined([proposals((1, 0, 5), (2, 1, 3), (2, 0, 3)), proposals((1, 0, 9), (2, 0, 1), (0, 4, 2))])
    assert listed(joined) == [(0, 4, 2), (1, 0, 9), (2, 0, 3), (2, 1, 3)]
    assert listed(Proposals.joined([proposals((3, 0, 1), (3, 1, 2))])) == [(3, 1, 2), (3, 0, 1)]
    assert listed(Proposals.joined([])) == []
    assert listed(Proposals.joined([proposals((0, 0, 1))])) == [(0, 0, 1)]


@pytest.mark.parametrize(("n_most", "kept"), [(0, []), (1, [0, 3]), (2, [0, 1, 3]), (9, [0, 1, 2, 3])])
def test_the_likeliest_are_the_first_of_each_row(n_most, kept):
    rows = [(1, 5, 9), (1, 2, 7), (1, 3, 7), (4, 0, 1)]
    assert listed(proposals(*rows).likeliest(n_most)) == [rows[at] for at in kept]
