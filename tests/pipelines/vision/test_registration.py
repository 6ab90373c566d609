"""Poses measured on real images: exact, and None where there is nothing to be found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image, ImageOps

from darkroom.pipelines.demo.images.material import photograph_image, texture
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.vision.registration import correlation, degrees_between, pose_of
from darkroom.pipelines.vision.visibility import orientation
from tests.matrices import every_nth

NAMES = ("astronaut", "coffee", "rocket", "pagoda", "horse", "page", "handwriting", "coins")


@pytest.mark.parametrize("name", every_nth(NAMES, 2))
@pytest.mark.parametrize("angle", [0, 41, 90, 137, 180, 222, 270, 319])
def test_a_turn_is_measured_to_a_degree(name, angle):
    original = photograph_image(name)
    found = pose_of(original, original.rotate(angle, Image.Resampling.BICUBIC, expand=True))
    assert abs(degrees_between(found.angle, angle)) < 1


def test_a_crop_is_placed_to_the_pixel():
    original = photograph_image("astronaut")
    shown = original.crop((100, 60, 400, 360)).resize((600, 600), Image.Resampling.BICUBIC)
    found = pose_of(original, shown)
    assert found.scale == pytest.approx(2, rel=0.01)
    assert found.share_shown(Box(120, 80, 380, 340)) == 1
    assert found.share_shown(Box(0, 60, 200, 360)) == pytest.approx(0.5, abs=0.02)
    assert found.share_shown(Box(420, 380, 500, 500)) == 0


def test_a_part_is_cut_out_of_what_shows_it_in_the_images_own_frame():
    original = photograph_image("astronaut")
    box = Box(150, 60, 300, 200)
    turned = original.rotate(70, Image.Resampling.BICUBIC, expand=True)
    cut = pose_of(original, turned).cut(turned, box)
    assert cut.size == (box.width, box.height)
    assert correlation(np.asarray(cut.convert("L")), np.asarray(original.crop(box).convert("L"))) > 0.95


@pytest.mark.parametrize("name", every_nth(NAMES, 3))
def test_mirrored_images_and_other_ones_are_not_found(name):
    original = photograph_image(name)
    assert pose_of(original, ImageOps.mirror(original)) is None
    assert pose_of(original, photograph_image("cat")) is None


@pytest.mark.parametrize("shown", [Image.new("L", (1, 1)), Image.new("RGB", (400, 300), "red"), texture("gravel")])
def test_what_shows_nothing_of_an_image_is_not_found(shown):
    assert pose_of(photograph_image("coffee"), shown) is None
    assert pose_of(shown, photograph_image("coffee")) is None


@pytest.mark.parametrize(
    ("one", "other", "degrees"), [(10, 350, 20), (350, 10, -20), (180, 0, 180), (0, 180, 180), (7, 7, 0)]
)
def test_directions_lie_at_most_half_a_turn_apart(one, other, degrees):
    assert degrees_between(one, other) == degrees


def test_plain_levels_correlate_with_nothing():
    assert correlation(np.zeros(9), np.arange(9)) == 0
    assert correlation(np.zeros(0), np.zeros(0)) == 0
    assert math.isclose(correlation(np.arange(9), -np.arange(9)), -1)


@pytest.mark.parametrize("name", ["astronaut", "cat", "coffee", "rocket", "pagoda", "flower", "motorcycle", "page"])
def test_photographs_and_print_have_an_upper_side(name):
    assert orientation(photograph_image(name)).visible


@pytest.mark.parametrize(
    "image", [texture("gravel"), texture("grass"), Image.new("L", (50, 50)), Image.radial_gradient("L")]
)
def test_textures_and_symmetric_images_have_none(image):
    assert not orientation(image).visible
