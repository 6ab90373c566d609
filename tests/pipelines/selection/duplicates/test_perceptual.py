"""Perceptual hashes: which images have one, and which changes keep it."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.demo.images.material import photograph_image
from darkroom.pipelines.selection.duplicates.looks import TURNS, perceptual_hash
from tests.image_files import jpeg

PHOTOGRAPHS = ("astronaut", "cat", "coffee", "pagoda", "motorcycle", "retina")


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


def bits_between(image: Image.Image, other: Image.Image) -> list[int]:
    """Differing bits of the image's hash and the other's in each turn."""
    hashes = [perceptual_hash(each) for each in (image, other)]
    return [(hashes[0].bits ^ turn).bit_count() for turn in hashes[1].turns]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_photograph_is_near_its_original_and_no_other(change):
    originals = [photograph_image(name) for name in PHOTOGRAPHS]
    near = [[bits_between(CHANGES[change](image), other)[0] <= 10 for other in originals] for image in originals]
    assert near == np.eye(len(PHOTOGRAPHS), dtype=bool).tolist()


@pytest.mark.parametrize("turn", ["rotated 90", "rotated 180", "rotated 270", "mirrored"])
def test_a_turned_photograph_is_near_in_its_turn_only(turn):
    original = photograph_image("coffee")
    degrees = int(turn.split()[-1]) if turn != "mirrored" else 0
    back = original.rotate(-degrees, expand=True)
    if turn == "mirrored":
        back = original.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    near = [TURNS[number] for number, bits in enumerate(bits_between(original, back)) if bits <= 8]
    assert near == [turn]
