"""Near-duplicates among images: what is found, what is not merged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from darkroom.pipelines.demo.images.material import photograph_image
from darkroom.pipelines.selection.duplicates import PerceptualHash, exact_images, kept, near_images, perceptual_hash
from tests.image_files import jpeg

PHOTOGRAPHS = ("astronaut", "cat", "coffee", "pagoda", "motorcycle", "retina")
HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=30)


def framed(image: Image.Image, colour: str) -> Image.Image:
    frame = Image.new("RGB", (image.width + 40, image.height + 60), colour)
    frame.paste(image, (20, 30))
    return frame


def cut(image: Image.Image) -> Image.Image:
    x, y = image.width // 100, image.height // 100
    return image.crop((x, y, image.width - x, image.height - y))


CHANGES = {
    "resized": lambda image: image.resize((image.width // 2, image.height // 2)),
    "recompressed": lambda image: jpeg(image, 30),
    "framed": lambda image: framed(image, "white"),
    "cut by a hundredth": cut,
    "grey": lambda image: image.convert("L"),
}


def hash_of(bits: int) -> PerceptualHash:
    return PerceptualHash((bits, *((bits * (2 * k + 3) + k) % 2**64 for k in range(7))))


@pytest.mark.parametrize(
    "image",
    [
        Image.new("RGB", (1, 1), "red"),
        Image.new("RGB", (1, 4000), "red"),
        Image.new("L", (300, 200), 255),
        Image.new("RGBA", (64, 64), (9, 9, 9, 0)),
        Image.linear_gradient("L"),
    ],
    ids=["one pixel", "a line", "white", "transparent", "gradient"],
)
def test_what_shows_too_little_has_no_hash(image):
    assert perceptual_hash(image) is None


def test_plain_images_do_not_collapse_into_one():
    assert near_images([perceptual_hash(Image.new("RGB", (50, 50), (n, n, n))) for n in range(0, 250, 10)]) == []


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_photograph_is_a_duplicate_and_no_other_is(change):
    originals = [photograph_image(name) for name in PHOTOGRAPHS]
    hashes = [perceptual_hash(image) for image in [*originals, *(CHANGES[change](image) for image in originals)]]
    found = near_images(hashes, max_distance=10)
    assert [(one.index, one.of) for one in found] == [(n + len(PHOTOGRAPHS), n) for n in range(len(PHOTOGRAPHS))]


@pytest.mark.parametrize("turn", ["rotated 90", "rotated 180", "rotated 270", "mirrored"])
def test_a_turned_photograph_is_found_only_when_asked_for(turn):
    original = photograph_image("coffee")
    degrees = int(turn.split()[-1]) if turn != "mirrored" else 0
    back = original.rotate(-degrees, expand=True)
    if turn == "mirrored":
        back = original.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    hashes = [perceptual_hash(original), perceptual_hash(back)]
    assert near_images(hashes) == []
    assert [one.turn for one in near_images(hashes, turned=True)] == [turn]


def test_a_chain_does_not_merge_its_ends():
    chain = [hash_of((1 << 6 * n) - 1) for n in range(4)]
    assert [(one.index, one.of, one.distance) for one in near_images(chain, max_distance=6)] == [(1, 0, 6), (3, 2, 6)]


def test_many_equal_hashes_are_one_cluster_with_the_first_kept():
    found = near_images([hash_of(12345)] * 20_000)
    assert kept(20_000, found) == [0]
    assert {one.of for one in found} == {0}


def expected(hashes: list[int], max_distance: int) -> list[int]:
    stays: list[int] = []
    for n, own in enumerate(hashes):
        if all((own ^ hashes[other]).bit_count() > max_distance for other in stays):
            stays.append(n)
    return stays


@given(HASHES, st.lists(st.tuples(st.integers(0, 29), st.sets(st.integers(0, 63), max_size=12)), max_size=20))
@settings(max_examples=60)
def test_the_same_stay_as_by_comparing_all(hashes, changes):
    hashes = hashes + [hashes[at % len(hashes)] ^ sum(1 << bit for bit in bits) for at, bits in changes if hashes]
    found = near_images([hash_of(bits) for bits in hashes], max_distance=8)
    assert kept(len(hashes), found) == expected(hashes, 8)
    for one in found:
        assert one.distance == (hashes[one.index] ^ hashes[one.of]).bit_count() <= 8
        assert one.of in kept(len(hashes), found)


def test_the_same_stay_over_several_blocks():
    rng = np.random.default_rng(1)
    some = rng.integers(0, 2**63, 3000, dtype=np.uint64)
    near = some ^ (np.uint64(1) << rng.integers(0, 60, 3000, dtype=np.uint64))
    hashes = [int(bits) for bits in np.concatenate([some, near])]
    assert kept(6000, near_images([hash_of(bits) for bits in hashes])) == list(range(3000))


def test_a_distance_beyond_half_the_bits_is_refused():
    with pytest.raises(ValueError, match="0 to 32"):
        near_images([hash_of(1), hash_of(2)] * 3000, max_distance=40)


def test_the_same_bytes_are_exact_duplicates():
    assert [(one.index, one.of) for one in exact_images(["a", "b", "a", "a"])] == [(2, 0), (3, 0)]
